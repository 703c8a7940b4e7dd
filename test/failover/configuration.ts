// The configuration of the cluster: what docs/high-availability.md shows, on one machine.

/** A machine of the cluster. */
export interface Member {
  readonly name: string;
  /** Owned by the user postgres. */
  readonly directory: string;
  readonly port: number;
  readonly restPort: number;
}

export function etcdArguments(directory: string, client: number, peer: number): string[] {
  const [clients, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
  return [
    ...["--name", "etcd0", "--data-dir", `${directory}/etcd`],
    ...["--listen-client-urls", clients, "--advertise-client-urls", clients],
    ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", `etcd0=${peers}`],
  ];
}

/** Patroni's file for one member. */
export function patroniConfiguration(
  { name, directory, port, restPort }: Member,
  { etcdPort, synchronous, binaries }: { etcdPort: number; synchronous: boolean; binaries: string },
): string {
  return `scope: arbor
name: ${name}
restapi:
  listen: 127.0.0.1:${restPort}
  connect_address: 127.0.0.1:${restPort}
etcd3:
  hosts: 127.0.0.1:${etcdPort}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    primary_start_timeout: 0
    maximum_lag_on_failover: 104857600
    synchronous_mode: ${synchronous}
    synchronous_mode_strict: ${synchronous}
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        synchronous_commit: "on"
        wal_log_hints: "on"
        max_connections: 60
        shared_buffers: 32MB
        wal_keep_size: 256MB
        tcp_user_timeout: 10000
  initdb:
    - encoding: UTF8
    - locale: C.UTF-8
    - data-checksums
  pg_hba:
    - host replication replicator 127.0.0.1/32 scram-sha-256
    - host all all 127.0.0.1/32 scram-sha-256
postgresql:
  listen: 127.0.0.1:${port}
  connect_address: 127.0.0.1:${port}
  data_dir: ${directory}/data
  bin_dir: ${binaries}
  pgpass: ${directory}/pgpass
  authentication:
    superuser: {username: postgres, password: secret}
    replication: {username: replicator, password: secret}
    rewind: {username: rewinder, password: secret}
  parameters:
    unix_socket_directories: ${directory}
`;
}

/** HAProxy forwards to the member that Patroni calls the primary, and cuts connections to one that is not any more. */
export function haproxyConfiguration(front: number, members: readonly Member[]): string {
  const servers = members.map(
    ({ name, port, restPort }) => `  server ${name} 127.0.0.1:${port} maxconn 100 check port ${restPort}`,
  );
  return `global
  maxconn 200
defaults
  mode tcp
  retries 2
  timeout connect 2s
  timeout check 1s
  timeout client 30m
  timeout server 30m
listen primary
  bind 127.0.0.1:${front}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fastinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join("\n")}
`;
}
