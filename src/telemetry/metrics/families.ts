// The metrics of the service: names, types, labels and help. docs/observability.md has the same table, which a test
// compares. The values of every label are known at start; none comes from a caller.

export interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

const gauge = (help: string, ...labels: readonly string[]) => ({ type: "gauge", help, labels }) as const;
const counter = (help: string, ...labels: readonly string[]) => ({ type: "counter", help, labels }) as const;
const histogram = (help: string, ...labels: readonly string[]) => ({ type: "histogram", help, labels }) as const;

// No label is named `job` or `instance`, which Prometheus adds to every series.
/** All families of the service; those of Node itself are in process-metrics. */
export const families = {
  arbor_build_info: gauge("Always 1; the labels say which version runs on which Node.", "version", "node"),

  arbor_requests_total: counter(
    "Responses, by the name of the method or route, the protocol and the code.",
    "method",
    "protocol",
    "code",
  ),
  arbor_request_duration_seconds: histogram(
    "Time from a request's headers to the end of its response. Methods that stream are not in it.",
    "method",
    "protocol",
  ),
  arbor_requests_in_flight: gauge("Requests in flight, including streams and waiting requests."),
  arbor_requests_waiting: gauge("Requests that wait for their turn on the event loop."),
  arbor_requests_rejected_total: counter("Requests and connections that were rejected, by reason.", "reason"),
  arbor_quota_rejections_total: counter("Calls rejected because a quota was full, by the kind that it limits.", "kind"),
  arbor_connections: gauge("Open connections by their protocol; detecting: not known yet.", "kind"),
  arbor_buffered_bytes: gauge("Bytes held of requests and of responses.", "direction"),
  arbor_buffered_bytes_limit: gauge("The most bytes that may be held of requests and of responses.", "direction"),

  arbor_write_queue_length: gauge("Units of work that wait for the writer of SQLite, or a connection to PostgreSQL."),
  arbor_write_batch_size: histogram("Units of work per commit of the group commit; SQLite only."),
  arbor_write_commit_duration_seconds: histogram("Time of commits of transactions that wrote."),
  arbor_write_conflicts_total: counter("Transactions that ran again after a conflict with another; PostgreSQL only."),
  arbor_database_up: gauge("1 when the last read for these metrics succeeded, 0 when the database did not respond."),
  arbor_database_fault: gauge("1 while the database, its machine or the way to it has this fault.", "fault"),
  arbor_database_fault_errors_total: counter(
    "Statements and units of work that failed because of this fault.",
    "fault",
  ),
  arbor_database_file_bytes: gauge("Sizes of the files of SQLite.", "file"),
  arbor_data_free_bytes: gauge("Free bytes where SQLite keeps its files."),
  arbor_database_connections: gauge("Connections to PostgreSQL by state.", "state"),
  arbor_database_connections_limit: gauge("The most connections to PostgreSQL that this process opens."),

  arbor_token_exchanges_total: counter("Token exchanges and uses of refresh tokens by outcome.", "grant", "outcome"),
  arbor_signing_keys: gauge("Stored keys by purpose and state.", "purpose", "state"),
  arbor_signing_key_change_timestamp_seconds: gauge(
    "When the next change of a key is due, by its state; for keys of API tokens.",
    "state",
  ),
  arbor_audit_unsealed_rows: gauge("Rows of the audit log without a seal, among the newest 5000 rows."),
  arbor_audit_sealer_lag_seconds: gauge("Age of the oldest row of the audit log without a seal; 0 when there is none."),

  arbor_audit_stopped_chains: gauge(
    "Organisations whose audit log this process seals no further, because it was changed.",
  ),

  arbor_event_subscriptions: gauge("Subscriptions to events by the state of their delivery.", "state"),
  arbor_event_subscriptions_failing: gauge(
    "Subscriptions whose sinks have accepted nothing for longer than this time; suspended ones are not among them.",
    "longer_than",
  ),
  arbor_event_subscriptions_suspended: gauge("Suspended subscriptions by the reason.", "reason"),
  arbor_events_waiting: gauge("Events that wait for an attempt, or for another one; at most 1000 are counted."),
  arbor_event_oldest_seconds: gauge(
    "Age of the oldest event that waits for another attempt (retry), or was not sent yet (unsent); 0 when there is none.",
    "waits_for",
  ),
  arbor_event_deliveries_total: counter("Attempts of this process to deliver events, by result.", "result"),
  arbor_event_dead_letters_total: counter(
    "Events that this process gave up: they are kept as dead letters for 30 days.",
  ),
  arbor_event_delivery_seconds: histogram("Time from a change to the response of the sink that accepted its event."),

  arbor_job_leader: gauge("1 while this process has the lease of the job.", "job_name"),
  arbor_job_leased: gauge("1 while any process has the lease of the job.", "job_name"),
  arbor_job_last_run_timestamp_seconds: gauge("When the last recorded run of the job began, on any node.", "job_name"),
  arbor_job_last_duration_seconds: gauge("How long the last recorded run of the job took, on any node.", "job_name"),
  arbor_job_overdue_seconds: gauge("How long the job has been due without a run on any node.", "job_name"),
  arbor_job_failures: gauge("Failures of the job in a row, on any node; 0 after a success.", "job_name"),
  arbor_job_runs_total: counter("Runs of the job in this process by outcome.", "job_name", "outcome"),

  arbor_cache_hits_total: counter("Lookups of values that were in the cache.", "cache"),
  arbor_cache_misses_total: counter("Lookups of values that were not in the cache.", "cache"),
  arbor_cache_entries: gauge("Entries of a cache.", "cache"),

  arbor_file_shortages_total: counter(
    "How often a file could not be opened because of a lack of descriptors.",
    "found_by",
  ),
  arbor_log_lines_lost_total: counter("Lines of the log that could not be written."),
  arbor_clock_jumps_total: counter("Jumps of the clock of the machine of more than five seconds.", "direction"),

  arbor_workers: gauge("Processes that serve calls; 1 without `--workers`."),
  arbor_workers_configured: gauge("Processes that should serve calls; 1 without `--workers`."),
  arbor_worker_exits_total: counter("Workers that ended by themselves and were replaced."),
  arbor_worker_scrapes_missed_total: counter("Scrapes without the gauges of a worker that did not answer in time."),
  arbor_worker_connections_refused_total: counter("Connections that were closed because no worker took them."),

  arbor_event_loop_active_seconds_total: counter("Time in which the event loop was active; its rate is the load."),
  arbor_scrape_duration_seconds: gauge("Time to create the response of the last scrape."),
  arbor_scrape_longest_slice_seconds: gauge(
    "The longest time that the last scrape blocked the event loop without a pause.",
  ),
} as const satisfies Readonly<Record<string, Family>>;

export type FamilyName = keyof typeof families;

/** The most series of one process, which determine the memory and work of a Prometheus server. */
export const MAX_SERIES = 20_000;

/** The most series of counts of requests; the rest is for all other metrics. */
export const MAX_REQUEST_SERIES = 19_000;
