package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/drill"
)

// handlerURLPrefix and a number from 0 on make the environment variables with the
// connection URLs that the handlers write through.
const handlerURLPrefix = "INBOX_HANDLER_URL_"

// drilling is what the command drill is told.
type drilling struct {
	target
	output         string
	terminationLog string
}

func newDrillCommand() *cobra.Command {
	d := &drilling{}
	command := &cobra.Command{
		Use:   "drill",
		Short: "Prove the inbox's contract on the real table",
		Long: `Tries on the real table what the inbox promises: a redelivered message is refused
after a commit, failed work leaves nothing behind and can be retried, and of two workers
with one message the second waits for the first. It writes a few records under the
reserved transport name ` + drill.TransportName + `, with the database's clock, and removes them at
once; what a killed drill left is removed by the next.

The connection URL comes from the environment variable ` + databaseURLVariable + `; its role needs
SELECT, INSERT and DELETE on the table. Connections that handlers write through come from
` + handlerURLPrefix + `0, ` + handlerURLPrefix + `1 and so on; their roles need SELECT and INSERT. Certificate
authorities in PEM come from ` + databaseCAVariable + `. Through a pooler a drill needs three server
connections. The report is one JSON object on standard output, or a table with -o table.

Exit code 0: the contract is proven. 4: it is broken. 3: it could not be tried, because of
a lock, another drill, a missing privilege or a database out of reach. 1: an error.`,
		Example: `  inbox drill
  INBOX_HANDLER_URL_0=postgresql://... inbox drill --schema shop -o table`,
		Args: noResource("drill %s"),
		RunE: func(command *cobra.Command, _ []string) error { return d.run(command) },
	}
	d.addFlags(command)
	flags := command.Flags()
	flags.StringVarP(&d.output, "output", "o", outputJSON, "the format: table or json")
	flags.StringVar(&d.terminationLog, "termination-log", "", "file that the report is also written to as JSON, such as /dev/termination-log in a pod")
	return command
}

func (d *drilling) run(command *cobra.Command) error {
	if d.output != outputTable && d.output != outputJSON {
		return fmt.Errorf("--output is %q; it can be %s or %s", d.output, outputTable, outputJSON)
	}
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	report := d.drill(ctx)
	return errors.Join(d.publish(command.OutOrStdout(), report), d.verdict(report))
}

func (d *drilling) drill(ctx context.Context) drill.Report {
	options := drill.Options{Contract: d.contract}
	var err error
	if options.Inbox, err = configFrom(d.urlVariable); err != nil {
		return unusable(d.urlVariable, err)
	}
	for i := 0; ; i++ {
		variable := fmt.Sprintf("%s%d", handlerURLPrefix, i)
		if _, given := os.LookupEnv(variable); !given {
			break
		}
		handler, err := configFrom(variable)
		if err != nil {
			return unusable(variable, err)
		}
		options.Handlers = append(options.Handlers, handler)
	}
	return drill.Run(ctx, options)
}

func unusable(variable string, err error) drill.Report {
	failure := database.Classify(err)
	cause := failure.Message
	if !strings.Contains(cause, variable) {
		cause = fmt.Sprintf("environment variable %s: %s", variable, cause)
	}
	return drill.Report{Result: drill.ResultNotTried, Reason: failure.Reason, Message: "The contract could not be tried: " + cause}
}

func (d *drilling) publish(out io.Writer, report drill.Report) error {
	encoded, err := report.JSON()
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if d.output == outputJSON {
		return publish(out, d.terminationLog, encoded)
	}
	return errors.Join(publish(io.Discard, d.terminationLog, encoded), printDrill(out, report))
}

func printDrill(out io.Writer, report drill.Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(report.Checks) > 0 {
		_, _ = fmt.Fprintln(table, "CONNECTION\tCHECK\tRESULT\tTIME\tEXPECTED\tHAPPENED") // Flush reports a broken output
	}
	for _, check := range report.Checks {
		result := "passed"
		if !check.Passed {
			result = check.Reason
		}
		took := time.Duration(check.Seconds * float64(time.Second)).Round(time.Millisecond)
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", check.Connection, check.Name, result, took, check.Expected, oneLine(check.Happened))
	}
	if len(report.Checks) > 0 {
		_, _ = fmt.Fprintln(table)
	}
	_, _ = fmt.Fprintf(table, "%s (%s). %s\n", report.Result, report.Reason, report.Message)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the drill: %w", err)
	}
	return nil
}

// verdict is the error with the exit code for the report. It leaves out what the table has
// just told the same reader.
func (d *drilling) verdict(report drill.Report) error {
	code, text := exitFailure, report.Message
	switch report.Result {
	case drill.ResultProven:
		return nil
	case drill.ResultBroken:
		code, text = exitBroken, "the contract is broken: "+report.Message
	case drill.ResultNotTried:
		code = exitNotTried
	}
	if d.output == outputTable {
		text = fmt.Sprintf("the drill ended: %s (%s)", report.Result, report.Reason)
	}
	return &exitError{code: code, err: errors.New(text)}
}
