// Package corpus runs the command line on true-to-life Symfony configurations: one
// script for each, with the manifest, the messages and the findings that it must give.
// Write them anew with go test ./test/corpus -update, and read the difference.
package corpus

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"

	"github.com/messaginginbox/operator/internal/cli"
)

var update = flag.Bool("update", false, "write the expected files anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"inbox": func() {
			err := cli.NewRootCommand().Execute()
			if err != nil {
				fmt.Fprintln(os.Stderr, "inbox:", err)
			}
			os.Exit(cli.ExitCode(err))
		},
	})
}

func TestConfigurations(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: *update})
}

func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/commands", UpdateScripts: *update})
}

// credentials are all those in the configurations of the corpus.
var credentials = []string{
	"s3cr3t-rabbit", "hunter2secret", "p#ss word", "pa55word", "another-secret",
	"AKIAEXAMPLE", "wJalrXUtnFEMIexample", "mongo-pw",
}

func TestNoCredentialIsEverWritten(t *testing.T) {
	found := map[string]bool{}
	for name, archive := range archives(t) {
		for _, credential := range credentials {
			found[credential] = found[credential] || strings.Contains(string(archive.Comment), credential)
			for _, file := range archive.Files {
				found[credential] = found[credential] || strings.Contains(string(file.Data), credential)
			}
			for _, output := range []string{"inbox.yaml", "messages", "lint"} {
				if strings.Contains(section(t, archive, output), credential) {
					t.Errorf("%s: %s holds the credential %q", name, output, credential)
				}
			}
		}
	}
	for _, credential := range credentials {
		if !found[credential] {
			t.Errorf("no configuration holds the credential %q: the test proves nothing of it", credential)
		}
	}
}

// archives are the scripts of the corpus by their names.
func archives(t *testing.T) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 25 {
		t.Fatalf("the corpus has %d configurations, at least 25 are wanted", len(files))
	}
	byName := map[string]*txtar.Archive{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		byName[strings.TrimSuffix(filepath.Base(file), ".txtar")] = archive
	}
	return byName
}

func section(t *testing.T, archive *txtar.Archive, name string) string {
	t.Helper()
	for _, file := range archive.Files {
		if file.Name == name {
			return string(file.Data)
		}
	}
	t.Fatalf("the script has no section %s", name)
	return ""
}
