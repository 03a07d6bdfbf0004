//go:build integration

package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/test/postgres"
)

const beParent = "POSTGRES_TEST_BE_PARENT"

func TestServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	if os.Getenv(beParent) != "" {
		s, err := postgres.Start(t.Context(), postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("server", s.Port(), s.SocketDir())
		time.Sleep(time.Minute) // until we are killed
		return
	}
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") // #nosec G204 G702 -- this very test
	parent.Env = append(os.Environ(), beParent+"=1")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 || fields[0] != "server" {
		t.Fatalf("the parent said %q, %v", line, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(fields[2]) })
	port, err := strconv.Atoi(fields[1])
	if err != nil || !answers(port) {
		t.Fatalf("no server on port %s, %v", fields[1], err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for deadline := time.Now().Add(20 * time.Second); answers(port); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server outlives its parent")
		}
	}
}

func answers(port int) bool {
	connection, err := new(net.Dialer).DialContext(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && connection.Close() == nil
}
