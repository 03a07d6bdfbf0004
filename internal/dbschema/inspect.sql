-- What the catalogue says of one table, as one row of JSON and so in one snapshot.
-- $1 schema, $2 table, $3 timestamp index, $4 unique index, $5 time zone.
WITH namespace AS (
	SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1::name
), relation AS (
	SELECT c.* FROM pg_catalog.pg_class c JOIN namespace n ON c.relnamespace = n.oid WHERE c.relname = $2::name
), leaves AS (
	SELECT relid FROM relation r, LATERAL pg_catalog.pg_partition_tree(r.oid) WHERE r.relkind = 'p' AND isleaf
	UNION ALL
	SELECT oid FROM relation WHERE relkind <> 'p'
), exclusive AS (
	-- Sizes and definitions need a lock on the table, and would wait behind such a session.
	SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l JOIN relation r ON l.relation = r.oid
		WHERE l.mode = 'AccessExclusiveLock' AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())) AS locked
), builders AS (
	-- A session without pg_read_all_stats sees of other roles' builds only the pid.
	SELECT p.pid, p.index_relid FROM pg_catalog.pg_stat_progress_create_index p
	JOIN pg_catalog.pg_locks l ON l.pid = p.pid AND l.mode = 'ShareUpdateExclusiveLock'
	JOIN relation r ON l.relation = r.oid
	WHERE p.datname = current_database()
), names AS (
	-- Relations that already have the name of an index that may be built.
	SELECT c.relname AS name, CASE c.relkind
		WHEN 'i' THEN format('an index of %s', i.indrelid::regclass) WHEN 'I' THEN format('an index of %s', i.indrelid::regclass)
		WHEN 'r' THEN 'a table' WHEN 'p' THEN 'a partitioned table' WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view'
		WHEN 'f' THEN 'a foreign table' WHEN 'S' THEN 'a sequence' ELSE 'another relation' END AS taken
	FROM pg_catalog.pg_class c JOIN namespace n ON c.relnamespace = n.oid LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
	WHERE c.relname IN ($3::name, $4::name) AND NOT EXISTS (SELECT FROM relation r WHERE r.oid = i.indrelid)
)
SELECT json_build_object(
	'schemaExists', EXISTS (SELECT FROM namespace),
	'exists', EXISTS (SELECT FROM relation) OR EXISTS (
		SELECT FROM pg_catalog.pg_type t JOIN namespace n ON t.typnamespace = n.oid
		WHERE t.typname = $2::name AND t.typcategory <> 'A'),
	'kind', coalesce((
		SELECT CASE
			WHEN relispartition THEN 'partition'
			WHEN relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = relation.oid) THEN 'table with inheriting tables'
			ELSE CASE relkind
				WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
				WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'c' THEN 'type'
				ELSE 'object of another kind' END
			END FROM relation), 'type'),
	'oid', coalesce((SELECT oid::bigint FROM relation), 0),
	'persistence', coalesce((SELECT CASE relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END FROM relation), ''),
	'owner', coalesce((SELECT pg_catalog.pg_get_userbyid(relowner) FROM relation), ''),
	'comment', coalesce((SELECT pg_catalog.obj_description(oid, 'pg_class') FROM relation), ''),
	'bytes', coalesce((
		SELECT sum(CASE WHEN (SELECT locked FROM exclusive)
			THEN (SELECT sum(c.relpages) FROM pg_catalog.pg_class c WHERE c.oid = l.relid
				OR c.oid IN (SELECT i.indexrelid FROM pg_catalog.pg_index i WHERE i.indrelid = l.relid)) * current_setting('block_size')::bigint
			ELSE pg_catalog.pg_total_relation_size(l.relid) END)
		FROM leaves l JOIN pg_catalog.pg_class c ON c.oid = l.relid WHERE c.relkind IN ('r', 'm')), 0)::bigint,
	'estimatedRows', coalesce((
		-- reltuples is as of the last vacuum; the counter follows each transaction, and is lost in a crash.
		SELECT sum(coalesce(nullif(pg_catalog.pg_stat_get_live_tuples(c.oid), 0), greatest(c.reltuples, 0))) FROM leaves l JOIN pg_catalog.pg_class c ON c.oid = l.relid), 0)::bigint,
	'columns', coalesce((
		SELECT json_agg(json_build_object(
			'name', a.attname,
			'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
			'typeOID', a.atttypid::bigint,
			'maxLength', CASE WHEN a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 0 END,
			'nullable', NOT a.attnotnull,
			'hasDefault', a.atthasdef OR a.attidentity <> '',
			'nondeterministicCollation', NOT coalesce((SELECT collisdeterministic FROM pg_catalog.pg_collation WHERE oid = a.attcollation), true)
		) ORDER BY a.attnum)
		FROM pg_catalog.pg_attribute a JOIN relation r ON a.attrelid = r.oid WHERE a.attnum > 0 AND NOT a.attisdropped), '[]'),
	'indexes', coalesce((
		SELECT json_agg(json_build_object(
			'name', c.relname,
			'method', m.amname,
			'columns', (SELECT json_agg(coalesce(a.attname, '') ORDER BY k.position)
				FROM unnest(i.indkey) WITH ORDINALITY k(attnum, position)
				LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum <> 0
				WHERE k.position <= i.indnkeyatts),
			'includedColumns', coalesce((SELECT json_agg(a.attname ORDER BY k.position)
				FROM unnest(i.indkey) WITH ORDINALITY k(attnum, position)
				JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
				WHERE k.position > i.indnkeyatts), '[]'),
			'unique', i.indisunique,
			'primary', i.indisprimary,
			'valid', i.indisvalid,
			'ready', i.indisready AND i.indislive,
			'immediate', i.indimmediate,
			'partial', i.indpred IS NOT NULL,
			-- The column exists since PostgreSQL 15.
			'nullsNotDistinct', coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false),
			'nondeterministicCollation', EXISTS (SELECT FROM pg_catalog.pg_collation WHERE oid = ANY (i.indcollation::oid[]) AND NOT collisdeterministic),
			'beingBuilt', NOT i.indisvalid AND EXISTS (SELECT FROM builders b WHERE coalesce(nullif(b.index_relid, 0), i.indexrelid) = i.indexrelid),
			'definition', CASE WHEN (SELECT locked FROM exclusive) THEN '' ELSE coalesce(pg_catalog.pg_get_indexdef(i.indexrelid), '') END
		) ORDER BY c.relname)
		FROM pg_catalog.pg_index i JOIN relation r ON i.indrelid = r.oid
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am m ON m.oid = c.relam), '[]'),
	'triggers', coalesce((
		SELECT json_agg(t.tgname ORDER BY t.tgname) FROM pg_catalog.pg_trigger t JOIN relation r ON t.tgrelid = r.oid
		WHERE NOT t.tgisinternal AND t.tgenabled <> 'D'), '[]'),
	'rules', coalesce((
		SELECT json_agg(w.rulename ORDER BY w.rulename) FROM pg_catalog.pg_rewrite w JOIN relation r ON w.ev_class = r.oid
		WHERE r.relkind IN ('r', 'p') AND w.ev_enabled <> 'D'), '[]'),
	'referencedBy', coalesce((
		SELECT json_agg(format('%I of %s', k.conname, k.conrelid::regclass) ORDER BY k.conname) FROM pg_catalog.pg_constraint k JOIN relation r ON k.confrelid = r.oid
		WHERE k.contype = 'f' AND k.conparentid = 0), '[]'),
	'timeZoneValid', $5::text = 'UTC' OR EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE lower(name) = lower($5::text)),
	'timestampIndexNameTakenBy', coalesce((SELECT taken FROM names WHERE name = $3::name), ''),
	'uniqueIndexNameTakenBy', coalesce((SELECT taken FROM names WHERE name = $4::name), '')
)
