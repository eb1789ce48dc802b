// reason-codes.ts: the reason codes of MQTT 5 (2.4) that the gateway sends, and which of them says why a
// CONNECT is refused or a connection closed. The compiler asks for the code of each new reason. Null: nothing
// is sent.

import type { ClientDropReason, DisconnectReason, RefusalReason } from '../client-faults.ts'

export const reasonCode = {
  success: 0x00,
  noSubscriptionExisted: 0x11,
  unspecifiedError: 0x80,
  malformedPacket: 0x81,
  protocolError: 0x82,
  implementationError: 0x83,
  clientIdNotValid: 0x85,
  badCredentials: 0x86,
  notAuthorized: 0x87,
  serverUnavailable: 0x88,
  serverBusy: 0x89,
  shuttingDown: 0x8b,
  badAuthenticationMethod: 0x8c,
  keepaliveTimeout: 0x8d,
  takenOver: 0x8e,
  topicFilterNotValid: 0x8f,
  topicNameNotValid: 0x90,
  receiveMaximumExceeded: 0x93,
  topicAliasNotValid: 0x94,
  packetTooLarge: 0x95,
  messageRateTooHigh: 0x96,
  quotaExceeded: 0x97,
  administrativeAction: 0x98,
  retainNotSupported: 0x9a,
  sharedSubscriptionsNotSupported: 0x9e,
  connectionRateExceeded: 0x9f,
  subscriptionIdsNotSupported: 0xa1,
} as const

type Codes<Reason extends string> = Readonly<Record<Reason, number | null>>

/** In CONNACK. What ends a connection before its CONNECT was read has none. */
export const refusalCodes: Codes<RefusalReason> = {
  tls_server_certificate_expired: null,
  tls_server_certificate_untrusted: null,
  tls_server_certificate_rejected: null,
  tls_no_common_version: null,
  tls_no_common_cipher: null,
  tls_client_certificate_missing: null,
  tls_client_certificate_untrusted: null,
  tls_client_certificate_expired: null,
  tls_client_certificate_revoked: null,
  tls_client_certificate_purpose: null,
  tls_client_certificate_weak: null,
  tls_revocation_list_expired: null,
  not_tls: null,
  http_on_tls_port: null,
  tls_timeout: null,
  tls_closed: null,
  tls_unused: null,
  tls_failed: null,
  not_http: null,
  http_no_upgrade: null,
  websocket_request: null,
  websocket_path: null,
  websocket_origin: null,
  websocket_protocol_missing: null,
  websocket_timeout: null,
  proxy_untrusted: null,
  proxy_header_missing: null,
  proxy_header_invalid: null,
  max_connects_per_s: null,
  max_connects_per_address_per_s: null,
  max_connections: reasonCode.serverBusy,
  max_connections_per_address: reasonCode.serverBusy,
  max_unauthenticated: reasonCode.serverBusy,
  max_unauthenticated_per_address: reasonCode.serverBusy,
  max_connections_per_identity: reasonCode.quotaExceeded,
  // Of MQTT 3.1.1.
  no_client_id: null,
  client_id_too_long: reasonCode.clientIdNotValid,
  client_id_in_use: reasonCode.clientIdNotValid,
  session_not_stored: reasonCode.serverUnavailable,
  no_user_name: reasonCode.notAuthorized,
  bad_credentials: reasonCode.badCredentials,
  passwords_busy: reasonCode.serverBusy,
  wills_full: reasonCode.quotaExceeded,
  authentication_method: reasonCode.badAuthenticationMethod,
  will_retain: reasonCode.retainNotSupported,
}

/**
 * In DISCONNECT; before CONNACK in CONNACK, where it has the code. A fault of the layout of a packet may name
 * another one (PacketFault).
 */
export const dropCodes: Codes<ClientDropReason> = {
  // Its version is not known yet, so it gets no answer.
  not_connect: null,
  connect_too_large: null,
  connect_timeout: null,
  tls_on_plain_port: null,
  unsupported_level: null,
  not_from_client: reasonCode.protocolError,
  packet_too_large: reasonCode.packetTooLarge,
  malformed_length: reasonCode.malformedPacket,
  bad_client_id: reasonCode.clientIdNotValid,
  bad_topic: reasonCode.topicNameNotValid,
  bad_will_topic: reasonCode.topicNameNotValid,
  bad_topic_filter: reasonCode.malformedPacket,
  bad_user_name: reasonCode.malformedPacket,
  bad_will_qos: reasonCode.malformedPacket,
  password_without_user: null,
  no_packet_id: reasonCode.protocolError,
  publish_before_connect: reasonCode.protocolError,
  protocol_error: reasonCode.malformedPacket,
  too_many_qos2: reasonCode.quotaExceeded,
  held_full: reasonCode.quotaExceeded,
  partial_packets_full: reasonCode.quotaExceeded,
  receive_maximum: reasonCode.receiveMaximumExceeded,
  topic_alias: reasonCode.topicAliasNotValid,
  too_many_control_packets: reasonCode.messageRateTooHigh,
  // Its faults are in frames, where no packet begins or ends.
  websocket_text: reasonCode.protocolError,
  websocket_protocol: reasonCode.protocolError,
  publish_refused: reasonCode.notAuthorized,
  keepalive_timeout: reasonCode.keepaliveTimeout,
  idle_timeout: reasonCode.administrativeAction,
  access_withdrawn: reasonCode.notAuthorized,
  closed_by_operator: reasonCode.administrativeAction,
  packet_too_slow: reasonCode.implementationError,
  spool_write_failed: reasonCode.implementationError,
  // It does not read.
  acks_not_read: null,
  half_closed: null,
}

/** In DISCONNECT, where the gateway ends a connection without a fault of its client. */
export const disconnectCodes: Codes<DisconnectReason> = {
  disconnect: null,
  closed: null,
  connection_lost: null,
  taken_over: reasonCode.takenOver,
  gateway_stopping: reasonCode.shuttingDown,
}

/** Of those above, what CONNACK may have (MQTT 5, 3.2.2.2). */
const connackCodes: ReadonlySet<number> = new Set([
  0x80, 0x81, 0x82, 0x83, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8c, 0x90, 0x95, 0x97, 0x9a, 0x9f,
])

/** [MQTT-3.2.2-8]. Null where CONNACK cannot say it; the connection is closed without an answer then. */
export function connackCodeOf(code: number | null): number | null {
  return code !== null && connackCodes.has(code) ? code : null
}
