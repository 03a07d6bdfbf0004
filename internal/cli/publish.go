package cli

import (
	"fmt"
	"io"
	"os"
)

// publish writes a report to the output and, in a pod, to the termination log, from where
// the operator reads it.
func publish(out io.Writer, terminationLog string, encoded []byte) error {
	if _, err := fmt.Fprintf(out, "%s\n", encoded); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if terminationLog == "" {
		return nil
	}
	if err := os.WriteFile(terminationLog, encoded, 0o600); err != nil {
		return fmt.Errorf("write the termination log: %w", err)
	}
	return nil
}
