package database

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestParseAccepts(t *testing.T) {
	tests := []struct {
		name, raw, target, password string
	}{
		{"a libpq URL", "postgresql://inbox:secret@db:5433/shop", "db:5433/shop as inbox", "secret"},
		{"the short scheme", "postgres://inbox:secret@db/shop", "db:5432/shop as inbox", "secret"},
		{"a scheme in capitals", "PostgreSQL://inbox:secret@db/shop", "db:5432/shop as inbox", "secret"},
		{"Doctrine's pgsql", "pgsql://inbox:secret@db:5432/shop", "db:5432/shop as inbox", "secret"},
		{"Doctrine's pdo-pgsql", "pdo-pgsql://inbox:secret@db/shop", "db:5432/shop as inbox", "secret"},
		{"Doctrine's pdo_pgsql", "pdo_pgsql://inbox:secret@db/shop", "db:5432/shop as inbox", "secret"},
		{"Symfony's default", "postgresql://app:!ChangeMe!@127.0.0.1:5432/app?serverVersion=16&charset=utf8", "127.0.0.1:5432/app as app", "!ChangeMe!"},
		{"Doctrine's nested options", "postgresql://u:p@h/d?driverOptions[12]=1&options%5B3%5D=x&persistent=1", "h:5432/d as u", "p"},
		{"an encoded password", "postgresql://u:p%40s%2Fs%3Aw%3Fr%23d%25@h/d", "h:5432/d as u", "p@s/s:w?r#d%"},
		{"a colon in the password", "postgresql://u:a:b@h/d", "h:5432/d as u", "a:b"},
		{"a plus is a plus", "postgresql://u:a+b@h/d", "h:5432/d as u", "a+b"},
		{"an encoded user", "postgresql://inbox%40tenant:p@h/d", "h:5432/d as inbox@tenant", "p"},
		{"no password", "postgresql://u@h/d", "h:5432/d as u", ""},
		{"no database: the user's name", "postgresql://u:p@h", "h:5432/u as u", "p"},
		{"several hosts", "postgresql://u:p@a:5433,b/d?target_session_attrs=read-write", "a:5433,b:5432/d as u", "p"},
		{"an IPv6 address", "postgresql://u:p@[2001:db8::1]:5433/d", "[2001:db8::1]:5433/d as u", "p"},
		{"an IPv6 address without port", "postgresql://u:p@[::1]/d", "[::1]:5432/d as u", "p"},
		{"a socket as an option", "postgresql://u:p@/d?host=/run/postgresql", "/run/postgresql:5432/d as u", "p"},
		{"a socket as the host", "postgresql://u:p@%2Frun%2Fpostgresql/d", "/run/postgresql:5432/d as u", "p"},
		{"user and password as options", "postgresql://h/d?user=u&password=p%26q", "h:5432/d as u", "p&q"},
		{"a line feed at the end", "postgresql://u:p@h/d\n", "h:5432/d as u", "p"},
		{"ignored options of libpq", "postgresql://u:p@h/d?keepalives=1&gssencmode=disable", "h:5432/d as u", "p"},
		{"keywords", "host=db port=5433 user=inbox password=secret dbname=shop", "db:5433/shop as inbox", "secret"},
		{"quoted keywords", `host = 'db' user='in box' password='a\'b\\c' dbname=shop`, "db:5432/shop as in box", `a'b\c`},
		{"an escaped keyword", `host=db user=u password=a\ b`, "db:5432/u as u", "a b"},
		{"a URL within a keyword", "host=db user=u password=x://y", "db:5432/u as u", "x://y"},
		{"keywords with several hosts", "host=a,b port=5432,5433 user=u", "a:5432,b:5433/u as u", ""},
		{"keywords with one port for all", "host=a,b port=5433 user=u", "a:5433,b:5433/u as u", ""},
		{"a control character in a name", "postgresql://u%0Ax:p@h/d", "h:5432/d as u?x", "p"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse(test.raw)
			if err != nil {
				t.Fatal(err)
			}
			if c.String() != test.target {
				t.Errorf("target %q, want %q", c, test.target)
			}
			if c.pgx.Password != test.password {
				t.Errorf("password %q, want %q", c.pgx.Password, test.password)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, raw, reason, says string
	}{
		{"nothing", " \n", ReasonInvalidURL, "empty"},
		{"MySQL", "mysql://u:hunter22@h/d", ReasonUnsupportedDatabase, "MySQL is not supported: the inbox needs PostgreSQL"},
		{"pdo-mysql", "pdo-mysql://u:hunter22@h/d", ReasonUnsupportedDatabase, "MySQL"},
		{"mysqli", "mysqli://u:hunter22@h/d", ReasonUnsupportedDatabase, "MySQL"},
		{"MariaDB", "mariadb://u:hunter22@h/d", ReasonUnsupportedDatabase, "MariaDB"},
		{"SQLite", "sqlite:///%kernel.project_dir%/var/data.db", ReasonUnsupportedDatabase, "SQLite"},
		{"SQL Server", "sqlsrv://u:hunter22@h/d", ReasonUnsupportedDatabase, "SQL Server"},
		{"Oracle", "oci8://u:hunter22@h/d", ReasonUnsupportedDatabase, "Oracle"},
		{"an unknown scheme", "hunter22://u:hunter22@h/d", ReasonUnsupportedDatabase, "expected postgresql, postgres, pgsql or pdo-pgsql"},
		{"a bare word", "hunter22", ReasonInvalidURL, "neither a URL"},
		{"no scheme", "u:hunter22@h/d", ReasonInvalidURL, "neither a URL"},
		{"@ in the password", "postgresql://u:hunter22@x@h/d", ReasonInvalidURL, "%40"},
		{"/ in the password", "postgresql://u:hunter22/x@h/d", ReasonInvalidURL, "%2F"},
		{"? in the password", "postgresql://u:hunter22?x=y@h/d", ReasonInvalidURL, "%3F"},
		{"# in the password", "postgresql://u:hunter22#x@h/d", ReasonInvalidURL, "%23"},
		{"% in the password", "postgresql://u:hunter22%x@h/d", ReasonInvalidURL, "%25"},
		{"%% of a YAML file", "postgresql://u:hunter22%%40@h/d", ReasonInvalidURL, "%25"},
		{"a password where the port belongs", "postgresql://u:hunter22/d", ReasonInvalidURL, "names no user"},
		{"a password where the port belongs, and a user", "postgresql://u:hunter22/d?user=u", ReasonInvalidURL, "port is not a number"},
		{"a port out of range", "postgresql://u:hunter22@h:65536/d", ReasonInvalidURL, "1 to 65535"},
		{"port 0", "postgresql://u:hunter22@h:0/d", ReasonInvalidURL, "1 to 65535"},
		{"more ports than hosts", "host=h port=1,2 user=u", ReasonInvalidURL, "1 hosts but 2 ports"},
		{"no host", "postgresql:///d?user=u", ReasonInvalidURL, "names no host"},
		{"an empty host in a list", "postgresql://u:hunter22@a,,b/d", ReasonInvalidURL, "names no host"},
		{"no user", "postgresql://:hunter22@h/d", ReasonInvalidURL, "names no user"},
		{"a broken IPv6 address", "postgresql://u:hunter22@[::1/d", ReasonInvalidURL, "IPv6"},
		{"text after an IPv6 address", "postgresql://u:hunter22@[::1]x/d", ReasonInvalidURL, "IPv6"},
		{"NUL", "postgresql://u:hunter22%00@h/d", ReasonInvalidURL, "NUL"},
		{"an option without value", "postgresql://u:p@h/d?hunter22", ReasonInvalidURL, "?name=value"},
		{"a misspelt option", "postgresql://u:p@h/d?ssl_mode=hunter22", ReasonInvalidURL, "option that is not known"},
		{"a wrong sslmode", "postgresql://u:p@h/d?sslmode=hunter22", ReasonInvalidURL, "sslmode must be one of disable, allow"},
		{"a wrong connect_timeout", "postgresql://u:p@h/d?connect_timeout=hunter22", ReasonInvalidURL, "connect_timeout"},
		{"a missing CA file", "postgresql://u:p@h/d?sslmode=verify-full&sslrootcert=/hunter22", ReasonInvalidURL, "sslrootcert"},
		{"a file of passwords", "postgresql://u@h/d?passfile=/hunter22", ReasonInvalidURL, "passfile is not supported"},
		{"a service file", "service=hunter22", ReasonInvalidURL, "service is not supported"},
		{"a revocation list", "postgresql://u@h/d?sslcrl=/hunter22", ReasonInvalidURL, "sslcrl is not supported"},
		{"a quote that does not end", "host=h user=u password='hunter22", ReasonInvalidURL, "does not end"},
		{"a password with a space", "host=h user=u password=a hunter22=c", ReasonInvalidURL, "option that is not known"},
		{"a keyword without value", "host=h user= password=hunter22", ReasonInvalidURL, "a keyword has no value"},
		{"a keyword twice", "host=h user=u password=a user=hunter22", ReasonInvalidURL, "twice"},
		{"a password with a space and no more", "host=h user=u password=a hunter22", ReasonInvalidURL, "single quotes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse(test.raw)
			var refused *URLError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, %v", c, err)
			}
			if refused.Reason != test.reason || !strings.Contains(refused.Message, test.says) {
				t.Errorf("got %s: %s", refused.Reason, refused.Message)
			}
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error repeats the input: %v", err)
			}
		})
	}
}

func TestParseTakesNothingFromTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"PGPASSWORD": "theirs", "PGSSLMODE": "verify-full", "PGOPTIONS": "-c x=y", "PGTZ": "CET", "PGAPPNAME": "theirs", "PGCONNECT_TIMEOUT": "77",
	} {
		t.Setenv(name, value)
	}
	c, err := Parse("postgresql://u@h/d?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config := c.connConfig(Limits{}, false)
	got := fmt.Sprintf("%q %t %s %v", config.Password, config.TLSConfig == nil, config.ConnectTimeout, config.RuntimeParams)
	want := `"" true 5s map[application_name:messaging-inbox client_encoding:UTF8 datestyle:ISO extra_float_digits:1 idle_in_transaction_session_timeout:30000ms ` +
		`lock_timeout:2000ms statement_timeout:10000ms timezone:UTC]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOptionsOfTheURLReachTheConnection(t *testing.T) {
	c, err := Parse("postgresql://u:p@h/d?application_name=shop&connect_timeout=3&options=-c%20search_path%3Dx&sslmode=verify-full")
	if err != nil {
		t.Fatal(err)
	}
	config := c.connConfig(Limits{ApplicationName: "inbox"}, true)
	if name := config.RuntimeParams["application_name"]; name != "shop" {
		t.Errorf("application_name %q", name)
	}
	if options := config.RuntimeParams["options"]; options != "-c search_path=x" {
		t.Errorf("options %q", options)
	}
	if config.ConnectTimeout != 3*time.Second {
		t.Errorf("connect timeout %s", config.ConnectTimeout)
	}
	if config.TLSConfig == nil || config.TLSConfig.ServerName != "h" || config.TLSConfig.InsecureSkipVerify {
		t.Error("verify-full is not in force")
	}
	if _, found := config.RuntimeParams["statement_timeout"]; found {
		t.Error("a pooler would refuse statement_timeout")
	}
}

func TestConfigIsRedactedHoweverItIsPrinted(t *testing.T) {
	c, err := Parse("postgresql://u:hunter22@h/d")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{c, *c, []any{c}, struct{ C *Config }{c}} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "hunter22") {
				t.Errorf("%s of %T prints the password: %s", verb, value, text)
			}
		}
	}
}

func TestFingerprintFollowsEveryPartOfTheTarget(t *testing.T) {
	seen := map[string]string{}
	for _, raw := range []string{
		"postgresql://u:p@h/d", "postgresql://u:q@h/d", "postgresql://v:p@h/d", "postgresql://u:p@i/d", "postgresql://u:p@h/e",
		"postgresql://u:p@h:1/d", "postgresql://u:p@h/d?sslmode=require",
	} {
		c, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[c.Fingerprint()]; other != "" {
			t.Errorf("%s and %s have one fingerprint", raw, other)
		}
		seen[c.Fingerprint()] = raw
	}
	same, err := Parse("host=h user=u password=p dbname=d")
	if err != nil {
		t.Fatal(err)
	}
	if seen[same.Fingerprint()] != "postgresql://u:p@h/d" {
		t.Error("the same target in keywords has another fingerprint")
	}
}

func TestWithCARefuses(t *testing.T) {
	tests := []struct{ name, raw, pem, says string }{
		{"a CA that would be unused", "postgresql://u:p@h/d?sslmode=disable", "", "sslmode=disable leaves the CA certificate unused"},
		{"text that is not PEM", "postgresql://u:p@h/d", "certificate", "not a certificate in PEM"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse(test.raw)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = c.WithCA([]byte(test.pem)); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzParse: no input makes Parse panic, no error and no printed target has the password in
// it, and a password that was encoded as it should be comes out as it went in.
func FuzzParse(f *testing.F) {
	schemes := []string{"postgresql", "mysql", "pdo-pgsql", "postgres", "unknown"}
	f.Add(uint8(0), "u", "secret", "h:5432", "d", "sslmode=require")
	f.Add(uint8(1), "u", "p@ss/w?r#d%", "h", "d", "serverVersion=8")
	f.Add(uint8(2), "u@x", "p:w", "a,b:1", "d", "charset=utf8&options[1]=2")
	f.Add(uint8(3), "", "[", "[::1]:1", "", "host=/run")
	f.Add(uint8(4), "", "' host='", "h", "", "user=u")
	f.Fuzz(func(t *testing.T, choice uint8, user, password, hosts, database, query string) {
		scheme := schemes[int(choice)%len(schemes)]
		const mark = "hunter22" // only the password has it
		if strings.Contains(user+hosts+database+query, mark) {
			t.Skip()
		}
		password = mark + password + mark
		encoded := scheme + "://" + url.QueryEscape(user) + ":" + encode(password) + "@" + hosts + "/" + url.QueryEscape(database) + "?" + query
		raw := scheme + "://" + user + ":" + password + "@" + hosts + "/" + database + "?" + query
		keywords := "host=h port=1 user=u dbname=d password=" + password + " " + query
		for _, input := range []string{encoded, raw, keywords} {
			mustNotShow(t, input, mark)
		}
		c, err := Parse("postgresql://u:" + encode(password) + "@h/d")
		if strings.Contains(password, "\x00") {
			if err == nil {
				t.Fatal("a NUL was accepted")
			}
			return
		}
		if err != nil || c.pgx.Password != password {
			t.Fatalf("the encoded password %q became %v, %v", password, c, err)
		}
	})
}

// mustNotShow fails when the error or the printed target of an input has the mark in it.
func mustNotShow(t *testing.T, input, mark string) {
	t.Helper()
	c, err := Parse(input)
	if err != nil && strings.Contains(err.Error(), mark) {
		t.Fatalf("the error for %q has the password in it: %v", input, err)
	}
	if err == nil && strings.Contains(c.String(), mark) {
		t.Fatalf("the target of %q shows the password: %s", input, c)
	}
}

// encode percent-encodes everything but letters and digits.
func encode(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
