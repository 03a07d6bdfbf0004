// Package elevate runs this program again with sudo.
package elevate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// Root reports whether this process may do everything.
func Root() bool { return os.Geteuid() == 0 }

// Run repeats this program as root with the given arguments and shows the command.
// Without a terminal sudo must not ask for a password.
func Run(ctx context.Context, arguments []string) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	sudo, err := exec.LookPath("sudo")
	if err != nil {
		return errors.New("this needs root, and sudo is not on PATH: become root and run the same command again")
	}
	command := []string{"--", own}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		command = append([]string{"--non-interactive"}, command...)
	}
	command = append(command, arguments...)
	shown := "sudo " + strings.Join(command, " ")
	fmt.Fprintln(os.Stderr, "this needs root, running:", shown)
	cmd := exec.CommandContext(ctx, sudo, command...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// sudo passes an interrupt on; killing sudo would not end the command behind it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("as root: %w (become root and run the same command again, or let sudo run without a password)", err)
	}
	return nil
}
