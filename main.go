// Command inbox is the messaging inbox operator and its command line.
package main

import (
	"fmt"
	"os"

	"github.com/messaginginbox/operator/internal/cli"
)

func main() {
	err := cli.NewRootCommand().Execute()
	if err != nil {
		fmt.Fprintln(os.Stderr, "inbox:", err)
	}
	os.Exit(cli.ExitCode(err))
}
