import type { GateOptions } from '../../src/ingest/broker/gate/gate.ts'

/** Small bounds, so that a test reaches them. */
export const gateOptions: GateOptions = {
  connectBytesMax: 1000,
  packetBytesMax: 1000,
  inFlightMax: 10,
  ackTimeoutMs: 5000,
  controlPacketsPerSecondMax: 100,
  partialTimeoutMs: 30_000,
  idleTimeoutMs: 86_400_000,
  tcpKeepaliveMs: 900_000,
}
