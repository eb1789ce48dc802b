// ingest.ts: the door of ingest.

export type IngestCounters = {
  /** Messages since start; received = mapped + ignored + copies + dead + dropped (+ what is still held). */
  received: number
  acked: number
  /** Messages whose every payload was a copy. */
  copies: number
  mapped: number
  dead: number
  ignored: number
  /** QoS 0 messages that could not be kept. */
  dropped: number
  held: number
  connections: number
  bytes: number
  /** Keyed `source|reason`. */
  ignoredByReason: ReadonlyMap<string, number>
  deadByReason: ReadonlyMap<string, number>
}

export type Ingest = {
  /** Opens the listeners; rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
  start(): Promise<void>
  /** Closes the doors: no new connection, no further packet read. What was read goes on to its ack. */
  closeDoors(): Promise<void>
  /** After the last acks: closes the connections. */
  close(): Promise<void>
  counters(): IngestCounters
  /** The addresses in use, as URLs; with the port that the system chose where the config says 0. */
  addresses(): readonly string[]
}
