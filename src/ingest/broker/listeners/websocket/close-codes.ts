// close-codes.ts: the code of the close frame that ends a WebSocket (RFC 6455, section 7.4.1), from the
// reason.

import type { ClientDropReason, DisconnectReason } from '../../client-faults.ts'

export type CloseReason = ClientDropReason | DisconnectReason

const normal = 1000
const goingAway = 1001
const protocolError = 1002
const notAccepted = 1003
const ruleBroken = 1008
const tooLarge = 1009
const internalError = 1011

const codes: Partial<Record<CloseReason, number>> = {
  gateway_stopping: goingAway,
  websocket_text: notAccepted,
  websocket_protocol: protocolError,
  connect_too_large: tooLarge,
  packet_too_large: tooLarge,
  spool_write_failed: internalError,
  disconnect: normal,
  closed: normal,
  connection_lost: normal,
  taken_over: normal,
}

/** Null: MQTT ended the connection, with DISCONNECT, a refused CONNECT or a take-over. */
export function closeCodeOf(reason: CloseReason | null): number {
  return reason === null ? normal : (codes[reason] ?? ruleBroken)
}
