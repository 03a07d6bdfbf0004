package database

import (
	"slices"
	"strconv"
	"strings"
)

// libpqOptions are the options that are acted on, with their possible values; nil: any.
// They are those of https://www.postgresql.org/docs/current/libpq-connect.html that pgx
// implements, without the ones that read credentials from files of the process's own.
var libpqOptions = map[string][]string{
	"host": nil, "port": nil, "user": nil, "password": nil, "dbname": nil,
	"application_name": nil, "connect_timeout": nil, "options": nil,
	"sslmode":     {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
	"sslrootcert": nil, "sslcert": nil, "sslkey": nil, "sslpassword": nil,
	"sslcertmode":          {"disable", "allow", "require"},
	"sslsni":               {"0", "1"},
	"sslnegotiation":       {"postgres", "direct"},
	"channel_binding":      {"disable", "prefer", "require"},
	"require_auth":         nil,
	"target_session_attrs": {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"},
}

// ignoredOptions change nothing here: Doctrine's own, and those of libpq that tune sockets
// or choose what pgx always does the same way.
var ignoredOptions = []string{
	"serverVersion", "server_version", "charset", "driver", "driverClass", "driver_class", "wrapperClass",
	"wrapper_class", "platform", "persistent", "default_dbname", "defaultTableOptions", "driverOptions",
	"logging", "profiling", "use_savepoints", "keep_replica", "keep_slave",
	"client_encoding", "fallback_application_name", "gssencmode", "gsslib", "keepalives", "keepalives_idle",
	"keepalives_interval", "keepalives_count", "tcp_user_timeout", "sslcompression", "load_balance_hosts",
}

// otherDatabases are the schemes of Doctrine's other drivers.
var otherDatabases = map[string]string{
	"mysql": "MySQL", "mysql2": "MySQL", "mysqli": "MySQL", "pdo-mysql": "MySQL", "pdo_mysql": "MySQL", "mariadb": "MariaDB",
	"sqlite": "SQLite", "sqlite3": "SQLite", "pdo-sqlite": "SQLite", "pdo_sqlite": "SQLite",
	"sqlsrv": "SQL Server", "mssql": "SQL Server", "pdo-sqlsrv": "SQL Server", "pdo_sqlsrv": "SQL Server",
	"oci8": "Oracle", "pdo-oci": "Oracle", "pdo_oci": "Oracle", "ibm-db2": "Db2", "ibm_db2": "Db2", "db2": "Db2",
}

// keepKnown keeps the options that are acted on, and refuses those that are not known.
func keepKnown(settings map[string]string) (map[string]string, error) {
	kept := map[string]string{}
	for key, value := range settings {
		if strings.Contains(key+value, "\x00") {
			return nil, invalid("the URL has a NUL character (%00), which PostgreSQL cannot take")
		}
		values, known := libpqOptions[key]
		switch {
		case known && (values == nil || slices.Contains(values, value)):
			kept[key] = value
		case known:
			return nil, invalid(key + " must be one of " + strings.Join(values, ", "))
		case key == "ssl" && value == "true":
			if settings["sslmode"] == "" {
				kept["sslmode"] = "require"
			}
		case slices.Contains([]string{"service", "servicefile", "passfile"}, key):
			return nil, invalid(key + " is not supported: put host, user and password into the URL itself")
		case slices.Contains([]string{"sslcrl", "sslcrldir"}, key):
			return nil, invalid(key + " is not supported: revocation lists are not checked")
		case !isIgnored(key):
			return nil, invalid("the URL has an option that is not known: remove it, or correct its spelling (libpq's names, such as sslmode and application_name)")
		}
	}
	return kept, nil
}

func isIgnored(key string) bool {
	// PHP writes a nested option as driverOptions[name]; PDO calls them options[name].
	name, _, nested := strings.Cut(key, "[")
	return slices.Contains(ignoredOptions, name) || nested && name == "options"
}

// complete checks host, port and user, and fills in the defaults of port and database.
func complete(settings map[string]string) error {
	hosts := strings.Split(settings["host"], ",")
	if slices.Contains(hosts, "") {
		return invalid("the URL names no host, or an empty one in a list: expected one such as " + example)
	}
	if settings["user"] == "" {
		return invalid("the URL names no user: expected one such as " + example)
	}
	if settings["port"] == "" {
		settings["port"] = "5432"
	}
	ports := strings.Split(settings["port"], ",")
	if len(ports) != 1 && len(ports) != len(hosts) {
		return invalid("the URL has " + strconv.Itoa(len(hosts)) + " hosts but " + strconv.Itoa(len(ports)) + " ports: give one port, or one for each host")
	}
	for _, port := range ports {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return invalid("the URL's port is not a number from 1 to 65535; if what stands there is a part of the password, " + encodeHint)
		}
	}
	if settings["dbname"] == "" {
		settings["dbname"] = settings["user"]
	}
	return nil
}
