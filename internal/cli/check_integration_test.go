//go:build integration

package cli

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/test/postgres"
)

const checkedManifest = `apiVersion: messaginginbox.dev/v1alpha1
kind: MessagingInbox
metadata: {name: orders}
spec:
  database: {urlSecretRef: {name: orders-database}}
  transports: [{name: orders, type: amqp}]
`

// The server's certificate is verified against the authority of the same variable that
// the Jobs have.
func TestACheckTrustsTheAuthorityOfTheEnvironment(t *testing.T) {
	server := postgres.Run(t, postgres.Options{TLS: true})
	target, err := url.Parse(server.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	target.RawQuery = "sslmode=verify-full"
	manifest := filepath.Join(t.TempDir(), "inbox.yaml")
	if err := os.WriteFile(manifest, []byte(checkedManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for authority, says := range map[string]string{
		string(server.CAPEM()): "DatabaseReachable     True     Connected",
		"":                     "DatabaseReachable     False",
	} {
		checked := command(target.String(), "check", "-f", manifest)
		checked.Env = append(checked.Env, databaseCAVariable+"="+authority)
		if ended := finish(t, checked, nil); !strings.Contains(ended.stdout, says) {
			t.Errorf("with an authority of %d bytes: exit code %d\n%s%s", len(authority), ended.code, ended.stdout, ended.stderr)
		}
	}
}
