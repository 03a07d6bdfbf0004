//go:build integration

package dbschema

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/messaginginbox/operator/test/postgres"
)

func TestInspectDescribesATableOfDoctrine(t *testing.T) {
	db := newDatabase(t, symfonyTable, "COMMENT ON TABLE messenger_inbox IS 'proofs'",
		"CREATE INDEX covering ON messenger_inbox (processed_at, lower(transport)) INCLUDE (message_id) WHERE transport <> ''",
		"INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 1000) n", "ANALYZE messenger_inbox")

	o := db.inspect(defaultContract)

	if !o.SchemaExists || !o.Exists || o.OID == 0 || o.Kind != KindTable || o.Persistence != Permanent || o.Owner != postgres.Superuser || o.Comment != "proofs" {
		t.Errorf("table is %+v", o)
	}
	if o.EstimatedRows != 1000 {
		t.Errorf("%d rows, want 1000", o.EstimatedRows)
	}
	if want := db.count("SELECT pg_total_relation_size('messenger_inbox')"); o.Bytes != want {
		t.Errorf("%d bytes, want %d", o.Bytes, want)
	}
	transport, _ := o.Column("transport")
	if transport.Type != "character varying(190)" || transport.MaxLength != 190 || transport.Nullable || transport.HasDefault || transport.NondeterministicCollation {
		t.Errorf("column is %+v", transport)
	}
	if len(o.Indexes) != 2 {
		t.Fatalf("indexes are %+v", o.Indexes)
	}
	covering, key := o.Indexes[0], o.Indexes[1]
	if strings.Join(covering.Columns, "|") != "processed_at|" || strings.Join(covering.IncludedColumns, "|") != "message_id" ||
		!covering.Partial || covering.Unique || !covering.Valid || !covering.Ready || covering.Method != "btree" || covering.BeingBuilt {
		t.Errorf("index is %+v", covering)
	}
	if !key.Primary || !key.Unique || !key.Immediate || !strings.Contains(key.Definition, "(transport, message_id)") {
		t.Errorf("index is %+v", key)
	}
	if o.Duplicates != nil {
		t.Error("duplicates were counted though the key rules them out")
	}
}

func TestEstimatedRowsFollowDeletionsBeforeAVacuum(t *testing.T) {
	db := newDatabase(t, symfonyTable, "ALTER TABLE messenger_inbox SET (autovacuum_enabled = off)",
		"INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 1000) n",
		"SELECT pg_stat_force_next_flush()", "ANALYZE messenger_inbox",
		"DELETE FROM messenger_inbox WHERE message_id::int > 400", "SELECT pg_stat_force_next_flush()")
	if o := db.inspect(defaultContract); o.EstimatedRows != 400 {
		t.Errorf("%d rows, want 400", o.EstimatedRows)
	}
}

func TestInspectLeavesTheStatisticsOfTheKeyAlone(t *testing.T) {
	db := newDatabase(t, symfonyTable, "INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 1000) n", "ANALYZE messenger_inbox")
	for range 20 {
		db.inspect(defaultContract)
	}
	db.run("SELECT pg_stat_force_next_flush()")
	if scans := db.count("SELECT coalesce(sum(idx_scan + idx_tup_read), 0)::bigint FROM pg_stat_user_indexes"); scans != 0 {
		t.Errorf("the indexes were read %d times", scans)
	}
}

func TestInspectNeedsNoPrivilegeOnTheTable(t *testing.T) {
	o := connectAs(t, newDatabase(t), "inspector", symfonyTable).inspect(defaultContract)
	if verdict := Compare(defaultContract, o); !verdict.Met() || o.Bytes == 0 {
		t.Errorf("findings %+v, %d bytes", verdict.Findings, o.Bytes)
	}
}

func TestInspectDoesNotWaitForALockOnTheTable(t *testing.T) {
	db := newDatabase(t, symfonyTable, "INSERT INTO messenger_inbox SELECT 'orders', n::text, now() FROM generate_series(1, 1000) n", "VACUUM ANALYZE messenger_inbox")
	other := connect(t, db.url)
	if _, err := other.Exec(t.Context(), "BEGIN; LOCK TABLE messenger_inbox"); err != nil {
		t.Fatal(err)
	}
	db.run("SET lock_timeout = '1ms'")
	if o := db.inspect(defaultContract); o.Bytes == 0 || o.EstimatedRows != 1000 {
		t.Errorf("%d bytes, %d rows", o.Bytes, o.EstimatedRows)
	}
}

func TestInspectRefusesNamesThatPostgreSQLCannotHold(t *testing.T) {
	db := newDatabase(t)
	c := defaultContract
	c.Table = "inbox\x00"
	if _, err := Inspect(t.Context(), db, c); !errors.Is(err, ErrInvalidContract) {
		t.Errorf("error is %v", err)
	}
}

// TestFindingsOnRealTables has one row per table that a person may point the operator at.
func TestFindingsOnRealTables(t *testing.T) {
	queue := "CREATE TABLE messenger_inbox (id bigserial PRIMARY KEY, body text NOT NULL, headers text NOT NULL, queue_name varchar(190) NOT NULL, " +
		"created_at timestamp(0) NOT NULL, available_at timestamp(0) NOT NULL, delivered_at timestamp(0))"
	keyless := "CREATE TABLE messenger_inbox (transport varchar(190) NOT NULL, message_id varchar(255) NOT NULL, processed_at timestamptz NOT NULL)"
	timestampIndex := "CREATE INDEX ON messenger_inbox (processed_at)"
	for _, test := range []struct {
		name       string
		statements []string
		contract   func(*Contract)
		met        bool
		reasons    []string
		steps      []StepKind
		message    string // part of the first finding's
	}{
		{name: "no time zone named", contract: func(c *Contract) { c.TimeZone = "" }, reasons: []string{ReasonTableMissing}, steps: []StepKind{CreateTable, MarkTable, CreateTimestampIndex}},
		{name: "nothing", reasons: []string{ReasonTableMissing}, steps: []StepKind{CreateTable, MarkTable, CreateTimestampIndex}},
		{name: "no schema", contract: func(c *Contract) { c.Schema = "absent" }, reasons: []string{ReasonSchemaNotFound}, message: `Schema "absent"`},
		{name: "Doctrine's table with an index", statements: []string{symfonyTable, timestampIndex}, met: true},
		{name: "Doctrine's table", statements: []string{symfonyTable}, met: true, reasons: []string{ReasonTimestampIndexMissing}, steps: []StepKind{CreateTimestampIndex}},
		{name: "mapped columns", statements: []string{"CREATE TABLE messenger_inbox (id bigserial PRIMARY KEY, receiver text NOT NULL, uid uuid NOT NULL, at timestamptz(3) NOT NULL, UNIQUE (uid, receiver))",
			"CREATE INDEX ON messenger_inbox USING brin (at)"}, contract: func(c *Contract) { c.Transport, c.MessageID, c.ProcessedAt = "receiver", "uid", "at" }, met: true},
		{name: "freyr/message-broker", statements: []string{queue}, reasons: []string{ReasonForeignTable}, message: "freyr/message-broker"},
		{name: "a queue that the contract maps", statements: []string{queue, "CREATE UNIQUE INDEX ON messenger_inbox (queue_name, body)"},
			contract: func(c *Contract) { c.Transport, c.MessageID, c.ProcessedAt = "queue_name", "body", "created_at" }, reasons: []string{ReasonForeignTable}},
		{name: "view", statements: []string{"CREATE VIEW messenger_inbox AS SELECT 'x' AS transport"}, reasons: []string{ReasonNotATable}, message: "is a view"},
		{name: "materialized view", statements: []string{"CREATE MATERIALIZED VIEW messenger_inbox AS SELECT 'x' AS transport"}, reasons: []string{ReasonNotATable}, message: "is a materialized view"},
		{name: "foreign table", statements: []string{"CREATE FOREIGN DATA WRAPPER w", "CREATE SERVER s FOREIGN DATA WRAPPER w", "CREATE FOREIGN TABLE messenger_inbox (transport text) SERVER s"},
			reasons: []string{ReasonNotATable}, message: "is a foreign table"},
		{name: "sequence", statements: []string{"CREATE SEQUENCE messenger_inbox"}, reasons: []string{ReasonNotATable}, message: "is a sequence"},
		{name: "index", statements: []string{"CREATE TABLE other (a int)", "CREATE INDEX messenger_inbox ON other (a)"}, reasons: []string{ReasonNotATable}, message: "is an index"},
		{name: "enum type", statements: []string{"CREATE TYPE messenger_inbox AS ENUM ('a')"}, reasons: []string{ReasonNotATable}, message: "is a type"},
		{name: "composite type", statements: []string{"CREATE TYPE messenger_inbox AS (a int)"}, reasons: []string{ReasonNotATable}, message: "is a type"},
		{name: "partition", statements: []string{strings.Replace(symfonyTable, "messenger_inbox", "whole", 1) + " PARTITION BY HASH (message_id)",
			"CREATE TABLE messenger_inbox PARTITION OF whole FOR VALUES WITH (MODULUS 1, REMAINDER 0)"}, reasons: []string{ReasonNotATable}, message: "is a partition"},
		{name: "inheritance", statements: []string{symfonyTable, "CREATE TABLE child () INHERITS (messenger_inbox)"}, reasons: []string{ReasonNotATable}, message: "inheriting"},
		{name: "partitioned and complete", statements: []string{symfonyTable + " PARTITION BY HASH (message_id)",
			"CREATE TABLE part PARTITION OF messenger_inbox FOR VALUES WITH (MODULUS 1, REMAINDER 0)", timestampIndex}, met: true},
		{name: "partitioned by time", statements: []string{keyless + " PARTITION BY RANGE (processed_at)", "CREATE UNIQUE INDEX ON messenger_inbox (transport, message_id, processed_at)"},
			reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}, message: "has more columns"},
		{name: "unlogged", statements: []string{strings.Replace(symfonyTable, "CREATE", "CREATE UNLOGGED", 1), timestampIndex}, reasons: []string{ReasonUnloggedTable}, message: "SET LOGGED"},
		{name: "missing columns", statements: []string{`CREATE TABLE messenger_inbox (transport text, "Mid" text)`}, reasons: []string{ReasonColumnMissing}, message: `has no column "message_id", "processed_at"; it has "transport", "Mid"`},
		{name: "no columns", statements: []string{"CREATE TABLE messenger_inbox ()"}, reasons: []string{ReasonColumnMissing}, message: "it has no columns"},
		{name: "wrong types", statements: []string{"CREATE TABLE messenger_inbox (transport name NOT NULL, message_id varchar(31) NOT NULL, processed_at date NOT NULL, PRIMARY KEY (transport, message_id))", timestampIndex},
			reasons: []string{ReasonColumnTypeMismatch, ReasonColumnTypeMismatch, ReasonColumnTypeMismatch}, message: `"transport"`},
		{name: "a collation that ignores case", statements: []string{"CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
			"CREATE TABLE messenger_inbox (transport text NOT NULL, message_id text COLLATE ci NOT NULL, processed_at timestamptz NOT NULL, PRIMARY KEY (transport, message_id))", timestampIndex},
			reasons: []string{ReasonColumnTypeMismatch, ReasonUniqueKeyTooNarrow, ReasonUniqueKeyMissing}, message: "deterministic collation"},
		{name: "nullable key", statements: []string{keyless, "ALTER TABLE messenger_inbox ALTER message_id DROP NOT NULL", "CREATE UNIQUE INDEX ON messenger_inbox (transport, message_id)", timestampIndex},
			reasons: []string{ReasonColumnNullable}, message: "SET NOT NULL"},
		{name: "nullable key, nulls not distinct", statements: []string{keyless, "ALTER TABLE messenger_inbox ALTER message_id DROP NOT NULL",
			"CREATE UNIQUE INDEX ON messenger_inbox (transport, message_id) NULLS NOT DISTINCT", timestampIndex}, met: true},
		{name: "nullable time", statements: []string{symfonyTable, "ALTER TABLE messenger_inbox ALTER processed_at DROP NOT NULL", timestampIndex}, met: true, reasons: []string{ReasonColumnNullable}, message: "never pruned"},
		{name: "no key", statements: []string{keyless}, reasons: []string{ReasonUniqueKeyMissing, ReasonTimestampIndexMissing}, steps: []StepKind{CreateUniqueIndex, CreateTimestampIndex}, message: "no duplicates"},
		{name: "deferrable key", statements: []string{keyless, "ALTER TABLE messenger_inbox ADD CONSTRAINT late UNIQUE (transport, message_id) DEFERRABLE", timestampIndex},
			reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}, message: `"late" is deferrable`},
		{name: "partial key", statements: []string{keyless, "CREATE UNIQUE INDEX part ON messenger_inbox (transport, message_id) WHERE transport <> 'x'", timestampIndex},
			reasons: []string{ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}, message: `"part" is partial`},
		{name: "key on the id alone", statements: []string{keyless, "ALTER TABLE messenger_inbox ADD PRIMARY KEY (message_id)", timestampIndex},
			reasons: []string{ReasonUniqueKeyTooNarrow, ReasonUniqueKeyMissing}, steps: []StepKind{CreateUniqueIndex}, message: "messenger_inbox_pkey"},
		{name: "duplicates", statements: []string{keyless, "INSERT INTO messenger_inbox VALUES ('a', '1', now()), ('a', '1', now()), ('a', '1', now()), ('b', '1', now()), ('b', '2', now()), ('b', '2', now())"},
			reasons: []string{ReasonDuplicateRecords, ReasonTimestampIndexMissing}, message: "2 messages are recorded more than once, in 5 rows"},
		{name: "index name taken", statements: []string{symfonyTable, "CREATE TABLE other (a int)", "CREATE INDEX messenger_inbox_processed_at_idx ON other (a)"},
			met: true, reasons: []string{ReasonIndexNameTaken}, message: "an index of other"},
		{name: "index name taken on the table itself", statements: []string{symfonyTable, "CREATE INDEX messenger_inbox_processed_at_idx ON messenger_inbox (message_id)"},
			met: true, reasons: []string{ReasonIndexNameTaken}, message: "another index of this table"},
		{name: "unique index name taken", statements: []string{keyless, timestampIndex, "CREATE VIEW messenger_inbox_transport_message_id_key AS SELECT 1"},
			reasons: []string{ReasonUniqueKeyMissing, ReasonIndexNameTaken}},
		{name: "index named like the table", contract: func(c *Contract) { c.TimestampIndex = c.Table }, reasons: []string{ReasonTableMissing, ReasonIndexNameTaken}, steps: []StepKind{CreateTable, MarkTable}},
		{name: "index name taken by an expression", statements: []string{symfonyTable, "CREATE INDEX messenger_inbox_processed_at_idx ON messenger_inbox (lower(message_id))"},
			met: true, reasons: []string{ReasonIndexNameTaken}, message: "another index of this table, on (an expression)"},
		{name: "an index of two columns", statements: []string{symfonyTable, "CREATE INDEX ON messenger_inbox (processed_at, transport)"}, met: true},
		{name: "partial timestamp index", statements: []string{symfonyTable, "CREATE INDEX p ON messenger_inbox (processed_at) WHERE transport = 'x'"}, met: true, reasons: []string{ReasonTimestampIndexMissing}, steps: []StepKind{CreateTimestampIndex}},
		{name: "unknown zone of a naive column", statements: []string{symfonyTable, timestampIndex}, contract: func(c *Contract) { c.TimeZone = "Europe/Pariss" }, reasons: []string{ReasonInvalidTimeZone}, message: "Europe/Pariss"},
		{name: "unknown zone of a column with zone", statements: []string{keyless, "ALTER TABLE messenger_inbox ADD PRIMARY KEY (transport, message_id)", timestampIndex}, contract: func(c *Contract) { c.TimeZone = "Europe/Pariss" }, met: true},
		{name: "a zone that PostgreSQL would make up", statements: []string{symfonyTable, timestampIndex}, contract: func(c *Contract) { c.TimeZone = "Paris+2" }, reasons: []string{ReasonInvalidTimeZone}},
		{name: "unknown zone, nothing there", contract: func(c *Contract) { c.TimeZone = "Europe/Pariss" }, reasons: []string{ReasonInvalidTimeZone, ReasonTableMissing}},
		{name: "a known zone", statements: []string{symfonyTable, timestampIndex}, contract: func(c *Contract) { c.TimeZone = "Europe/Paris" }, met: true},
		{name: "foreign key", statements: []string{symfonyTable, timestampIndex, "CREATE TABLE payments (t varchar, m varchar, CONSTRAINT proof FOREIGN KEY (t, m) REFERENCES messenger_inbox ON DELETE CASCADE)"},
			reasons: []string{ReasonReferencedTable}, message: "proof of payments"},
		{name: "trigger and rule", statements: []string{symfonyTable, timestampIndex, "CREATE TRIGGER watch BEFORE UPDATE ON messenger_inbox FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
			"CREATE RULE hush AS ON UPDATE TO messenger_inbox DO INSTEAD NOTHING"}, met: true, reasons: []string{ReasonTriggersOrRules}, message: "watch, hush"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := newDatabase(t, test.statements...)
			c := defaultContract
			if test.contract != nil {
				test.contract(&c)
			}
			verdict := db.compare(c)
			assertReasons(t, verdict, test.reasons...)
			assertSteps(t, verdict, test.steps...)
			if verdict.Met() != test.met {
				t.Errorf("met is %t: %+v", verdict.Met(), verdict.Findings)
			}
			if test.message != "" && !strings.Contains(verdict.Findings[0].Message, test.message) {
				t.Errorf("message is %q, want %q in it", verdict.Findings[0].Message, test.message)
			}
		})
	}
}

func TestDuplicatesThatTakeTooLongToCountAreUnknown(t *testing.T) {
	db := newDatabase(t, "CREATE TABLE messenger_inbox AS SELECT 'orders' AS transport, n::text AS message_id, now() AS processed_at FROM generate_series(1, 500000) n",
		"ALTER TABLE messenger_inbox ALTER transport SET NOT NULL, ALTER message_id SET NOT NULL")
	o, err := inspect(t.Context(), db, defaultContract, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	verdict := Compare(defaultContract, o)
	assertReasons(t, verdict, ReasonUniqueKeyMissing, ReasonColumnNullable, ReasonTimestampIndexMissing)
	assertSteps(t, verdict)
	if !strings.Contains(verdict.Findings[0].Message, "more records than could be compared in 20ms") {
		t.Error(verdict.Findings[0].Message)
	}
}
