package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// databaseCAVariable holds the certificate authorities, in PEM, that the server's
// certificate is verified against.
const databaseCAVariable = "INBOX_DATABASE_CA"

// target is what a command that works on one table is told about it.
type target struct {
	urlVariable string
	contract    dbschema.Contract
}

// addFlags has the flags that name the table and the connection.
func (t *target) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.urlVariable, "database-url-env", databaseURLVariable, "environment variable that holds the connection URL")
	flags.StringVar(&t.contract.Schema, "schema", "public", "schema of the table")
	flags.StringVar(&t.contract.Table, "table", "messenger_inbox", "name of the table")
	flags.StringVar(&t.contract.Transport, "transport-column", "transport", "column with the transport's name")
	flags.StringVar(&t.contract.MessageID, "message-id-column", "message_id", "column with the message's id")
	flags.StringVar(&t.contract.ProcessedAt, "processed-at-column", "processed_at", "column with the time at which the message was handled")
	flags.StringVar(&t.contract.TimeZone, "time-zone", "UTC", "time zone in which a processed-at column without time zone is written: an IANA name")
	flags.StringVar(&t.contract.TimestampIndex, "timestamp-index", "", "name of the index on the processed-at column (default: the table's name followed by _processed_at_idx)")
}

// connect opens a connection with the URL, and the certificate authorities when there
// are any, from the environment.
func (t *target) connect(ctx context.Context, limits database.Limits) (*pgx.Conn, error) {
	config, err := configFrom(t.urlVariable)
	if err != nil {
		return nil, err
	}
	return config.Connect(ctx, limits)
}

// noResource refuses the name of a resource where the plugin's command of the same name was
// meant, which is called as clusterCommand says.
func noResource(clusterCommand string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return nil
		}
		return onADatabase(command, fmt.Sprintf(clusterCommand, arguments[0]))
	}
}

func onADatabase(command *cobra.Command, clusterCommand string) error {
	return fmt.Errorf("%[1]s works on the database of %[2]s, and knows no resources; for a resource of a cluster, say: kubectl inbox %[3]s (or inbox kubectl %[3]s)",
		command.CommandPath(), databaseURLVariable, clusterCommand)
}

// configFrom reads a connection URL from an environment variable.
func configFrom(variable string) (*database.Config, error) {
	url := os.Getenv(variable)
	if url == "" {
		return nil, &database.URLError{Reason: database.ReasonInvalidURL,
			Message: fmt.Sprintf("the environment variable %s is empty; set it to the connection URL, such as postgresql://user:password@host/database", variable)}
	}
	return parseTarget(url)
}

// parseTarget adds the certificate authorities of the environment, when there are any.
func parseTarget(url string) (*database.Config, error) {
	config, err := database.Parse(url)
	if err != nil {
		return nil, err
	}
	if authorities := os.Getenv(databaseCAVariable); authorities != "" {
		return config.WithCA([]byte(authorities))
	}
	return config, nil
}
