// Command inbox is the messaging inbox operator and its command line. Under the file name
// kubectl-inbox it is a kubectl plugin.
package main

import (
	"fmt"
	"os"

	"github.com/messaginginbox/operator/internal/cli"
)

func main() {
	err := cli.NewCommand(os.Args).Execute()
	if err != nil {
		fmt.Fprintln(os.Stderr, "inbox:", err)
	}
	os.Exit(cli.ExitCode(err))
}
