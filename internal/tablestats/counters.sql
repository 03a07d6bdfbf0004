-- PostgreSQL's statistics of one table and its unique index, partitions summed up, as
-- one row of JSON. $1 oid of the table, $2 name of its unique index.
WITH leaves AS (
	SELECT relid AS oid FROM pg_catalog.pg_partition_tree($1::oid::regclass) WHERE isleaf
	UNION SELECT $1::oid WHERE (SELECT relkind FROM pg_catalog.pg_class WHERE oid = $1::oid) <> 'p'
), key AS (
	SELECT i.indexrelid AS oid FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
	WHERE i.indrelid = $1::oid AND c.relname = $2::name
), keys AS (
	SELECT t.relid AS oid FROM key, LATERAL pg_catalog.pg_partition_tree(key.oid::regclass) t WHERE t.isleaf
	UNION SELECT key.oid FROM key JOIN pg_catalog.pg_class c ON c.oid = key.oid WHERE c.relkind = 'i'
), widths AS (
	-- Bytes of one row with its header, as of the last ANALYZE.
	SELECT l.oid, 28 + 8 * ceil((sum(s.avg_width * (1 - s.null_frac)) + 4) / 8) AS bytes
	FROM leaves l JOIN pg_catalog.pg_class c ON c.oid = l.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname GROUP BY l.oid
), tables AS (
	SELECT l.oid,
		pg_catalog.pg_stat_get_live_tuples(l.oid) AS live,
		pg_catalog.pg_relation_size(l.oid) AS bytes,
		w.bytes AS row_bytes,
		coalesce((SELECT option_value::int FROM pg_catalog.pg_options_to_table(c.reloptions) WHERE option_name = 'fillfactor'), 100) AS fill
	FROM leaves l JOIN pg_catalog.pg_class c ON c.oid = l.oid LEFT JOIN widths w ON w.oid = l.oid
), indexes AS (
	SELECT c.relname AS name, (SELECT coalesce(sum(pg_catalog.pg_table_size(part.oid)), 0)::bigint FROM (
		SELECT relid AS oid FROM pg_catalog.pg_partition_tree(c.oid::regclass) WHERE isleaf UNION SELECT c.oid WHERE c.relkind = 'i') part) AS bytes
	FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = $1::oid
), page AS (
	SELECT current_setting('block_size')::numeric AS bytes
)
SELECT json_build_object(
	'clock', clock_timestamp(),
	'table', $1::oid::bigint,
	'index', coalesce((SELECT oid::bigint FROM key), 0),
	'statsReset', (SELECT pg_catalog.pg_stat_get_db_stat_reset_time(oid) FROM pg_catalog.pg_database WHERE datname = current_database()),
	'inserted', coalesce(sum(pg_catalog.pg_stat_get_tuples_inserted(t.oid)), 0)::bigint,
	'updated', coalesce(sum(pg_catalog.pg_stat_get_tuples_updated(t.oid)), 0)::bigint,
	'deleted', coalesce(sum(pg_catalog.pg_stat_get_tuples_deleted(t.oid)), 0)::bigint,
	'live', coalesce(sum(t.live), 0)::bigint,
	'dead', coalesce(sum(pg_catalog.pg_stat_get_dead_tuples(t.oid)), 0)::bigint,
	'recounts', coalesce(sum(pg_catalog.pg_stat_get_vacuum_count(t.oid) + pg_catalog.pg_stat_get_autovacuum_count(t.oid)
		+ pg_catalog.pg_stat_get_analyze_count(t.oid) + pg_catalog.pg_stat_get_autoanalyze_count(t.oid)), 0)::bigint,
	'indexScans', (SELECT coalesce(sum(pg_catalog.pg_stat_get_numscans(oid)), 0)::bigint FROM keys),
	'indexReads', (SELECT coalesce(sum(pg_catalog.pg_stat_get_tuples_returned(oid)), 0)::bigint FROM keys),
	'lastVacuum', min(greatest(pg_catalog.pg_stat_get_last_vacuum_time(t.oid), pg_catalog.pg_stat_get_last_autovacuum_time(t.oid))),
	'heapBytes', coalesce(sum(t.bytes), 0)::bigint,
	'indexBytes', coalesce(sum(pg_catalog.pg_indexes_size(t.oid)), 0)::bigint,
	'indexes', (SELECT coalesce(json_agg(json_build_object('name', name, 'bytes', bytes) ORDER BY name), '[]') FROM indexes),
	-- Null until every table that has rows was analyzed.
	'neededHeapBytes', CASE WHEN bool_and(t.row_bytes IS NOT NULL OR t.live = 0)
		THEN coalesce(sum(ceil(t.live / greatest(floor((page.bytes - 24) * t.fill / 100 / t.row_bytes), 1)) * page.bytes), 0)::bigint END
)
FROM tables t, page
