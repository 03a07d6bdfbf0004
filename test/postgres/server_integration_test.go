//go:build integration

package postgres_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/messaginginbox/operator/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m, postgres.Options{})) }

func query(t *testing.T, url, statement string) string {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(t.Context())) }()
	var answer string
	if err := connection.QueryRow(t.Context(), statement).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestNewDatabaseIsEmptyAndNamedAfterTheTest(t *testing.T) {
	url := postgres.Shared(t).NewDatabase(t)
	if name := query(t, url, "SELECT current_database()"); !strings.HasPrefix(name, "t_testnewdatabaseisempty") {
		t.Errorf("database is %s", name)
	}
	if count := query(t, url, "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'"); count != "0" {
		t.Errorf("%s tables", count)
	}
}

func TestNewDatabaseIsDroppedThoughASessionIsOpen(t *testing.T) {
	s := postgres.Shared(t)
	t.Run("inner", func(t *testing.T) {
		if _, err := pgx.Connect(t.Context(), s.NewDatabase(t)); err != nil {
			t.Fatal(err)
		}
	})
	count := query(t, s.URL("postgres"), "SELECT count(*)::text FROM pg_database WHERE datname LIKE 't_testnewdatabaseisdropped%'")
	if count != "0" {
		t.Errorf("%s databases are left", count)
	}
}

func TestServerAsksForThePassword(t *testing.T) {
	s := postgres.Shared(t)
	connection, err := pgx.Connect(t.Context(), s.URLFor(postgres.Superuser, "wrong", "postgres"))
	if err == nil {
		t.Error("a wrong password was accepted", connection.Close(t.Context()))
	}
}

func TestRestartKeepsPortAndData(t *testing.T) {
	s := postgres.Run(t, postgres.Options{TLS: true})
	if err := s.CreateDatabase(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	url := s.URL("kept")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if encrypted := query(t, url, "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()"); encrypted != "true" {
		t.Error("the connection is not encrypted")
	}
}

func TestDataDirKeepsDataAfterStop(t *testing.T) {
	dir, err := os.MkdirTemp("", "kept-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	first, err := postgres.Start(t.Context(), postgres.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.CreateDatabase(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := postgres.Run(t, postgres.Options{DataDir: dir})
	if name := query(t, second.URL("kept"), "SELECT current_database()"); name != "kept" {
		t.Errorf("database is %s", name)
	}
}

func TestReplicaFollowsReadOnly(t *testing.T) {
	s := postgres.Shared(t)
	replica, err := s.Replica(t.Context(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	})
	if recovering := query(t, replica.URL("postgres"), "SELECT pg_is_in_recovery()::text"); recovering != "true" {
		t.Error("the replica is not in recovery")
	}
}

func TestPausedServerDoesNotAnswer(t *testing.T) {
	s := postgres.Run(t, postgres.Options{})
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(short, s.URL("postgres")); err == nil {
		t.Error("a paused server answered")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if one := query(t, s.URL("postgres"), "SELECT '1'"); one != "1" {
		t.Errorf("answer is %s", one)
	}
}

func TestStartReportsTheServersComplaint(t *testing.T) {
	var log bytes.Buffer
	_, err := postgres.Start(t.Context(), postgres.Options{Settings: map[string]string{"no_such_setting": "1"}, Log: &log})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") || !strings.Contains(log.String(), "no_such_setting") {
		t.Errorf("error %v, log %q", err, log.String())
	}
}
