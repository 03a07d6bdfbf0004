package brokers

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/messaginginbox/operator/test/process"
)

// emulator is the package of the SQS emulator, with its dependencies pinned.
//
//go:embed fauxqs/package.json fauxqs/package-lock.json
var emulator embed.FS

// SQS is a running emulator of Amazon SQS.
type SQS struct {
	process *process.Process
	dir     string
	port    int
}

// StartSQS returns once the emulator takes connections. It is installed in the user's cache
// directory at the first use. The context bounds installation and start only.
func StartSQS(ctx context.Context) (*SQS, error) {
	node, err := process.Find("node", "nodejs")
	if err != nil {
		return nil, err
	}
	program, err := installEmulator(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := process.FreePorts(ctx, host, 1)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sqs-")
	if err != nil {
		return nil, err
	}
	s := &SQS{dir: dir, port: ports[0]}
	command := exec.Command(node, program) // #nosec G204 -- a test tool
	command.Env = append(os.Environ(), "FAUXQS_PORT="+strconv.Itoa(s.port), "FAUXQS_HOST=127.0.0.1")
	command.Dir = dir
	if s.process, err = process.Start(command, "sqs", nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.process.AwaitReady(ctx, s.answers); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *SQS) answers(ctx context.Context) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return err
	}
	return connection.Close()
}

// Address to connect to, over plain HTTP: host and port.
func (s *SQS) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Stop ends the emulator and removes its files.
func (s *SQS) Stop() error { return errors.Join(s.process.Stop(), os.RemoveAll(s.dir)) }

// installEmulator returns the emulator's program. Two that install at once do not meet:
// each does so in a directory of its own, and the first to rename it wins.
func installEmulator(ctx context.Context) (string, error) {
	lock, err := emulator.ReadFile("fauxqs/package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(lock)
	parent := filepath.Join(cache, "messaging-inbox")
	installed := filepath.Join(parent, "fauxqs-"+hex.EncodeToString(digest[:8]))
	program := filepath.Join(installed, "node_modules", "fauxqs", "dist", "cli.js")
	if _, err = os.Stat(program); err == nil {
		return program, nil
	}
	npm, err := process.Find("npm", "npm")
	if err != nil {
		return "", err
	}
	if err = os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(parent, "fauxqs-new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // it is gone after the renaming
	files, err := fs.Sub(emulator, "fauxqs")
	if err != nil {
		return "", err
	}
	if err = os.CopyFS(fresh, files); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev") // #nosec G204 -- a test tool
	command.Dir = fresh
	if output, runErr := command.CombinedOutput(); runErr != nil {
		return "", fmt.Errorf("install the SQS emulator: %w\n%s", runErr, output)
	}
	if err = os.Rename(fresh, installed); err != nil {
		if _, statErr := os.Stat(program); statErr != nil {
			return "", err
		}
	}
	return program, nil
}
