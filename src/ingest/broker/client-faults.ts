// client-faults.ts: why the gateway refuses a CONNECT or closes a connection, and how other connections end.
// The key is a stable code and a label of the metrics; the text is the sentence of the log line.

import type { TlsFailure } from '../../std/tls/tls.ts'

/** Connections to a listener with TLS that end before their CONNECT. */
const tlsFailures = {
  tls_server_certificate_expired:
    'It refuses the certificate of the listener, because it has expired. Renew the certificate.',
  tls_server_certificate_untrusted:
    'It does not know the authority of the certificate of the listener. Give it this authority, and put the whole ' +
    'chain into tls.cert.',
  tls_server_certificate_rejected:
    'It refuses the certificate of the listener. Check its dates, its host names and its authority.',
  tls_no_common_version: 'It has no TLS version in common with the listener, which needs TLS 1.2 or 1.3.',
  tls_no_common_cipher:
    'It has no cipher in common with the listener. Check the type of the key in tls.cert, and the ciphers of the device.',
  tls_client_certificate_missing:
    'It sends no certificate, which tls.client_ca of the listener requires. Give the device a certificate.',
  tls_client_certificate_untrusted:
    'Its certificate is not valid now, or not of an authority in tls.client_ca of the listener.',
  tls_client_certificate_expired: 'Its certificate has expired. Give the device a new one.',
  tls_client_certificate_purpose:
    'Its certificate is not for clients: OpenSSL refuses its purpose. Give the device one with the extended key usage ' +
    'clientAuth, or without any.',
  tls_client_certificate_weak:
    'OpenSSL refuses its certificate or that of its authority: the key is too small (RSA below 2048 bits), or it is ' +
    'signed with SHA-1 or MD5. Give the device another one.',
  tls_client_certificate_revoked: 'Its certificate is in tls.client_crl of the listener.',
  tls_revocation_list_expired:
    'A revocation list in tls.client_crl of the listener has expired. Renew the list; until then all certificates of its ' +
    'authority are refused.',
  not_tls:
    'It does not speak TLS to a listener with TLS (mqtts://, wss://). Switch TLS on in the device, or give it the port of ' +
    'a listener without TLS.',
  http_on_tls_port: 'It speaks HTTP without TLS to a listener with TLS.',
  tls_timeout: 'It did not complete the TLS handshake within connect_timeout.',
  tls_closed:
    'It closed its connection during the TLS handshake. Many clients do that when they refuse the certificate of the ' +
    'listener: check its dates, host names and authority.',
  tls_unused:
    'It closed its connection after the TLS handshake without CONNECT. Some clients do that when they refuse the ' +
    'certificate of the listener: check its dates, host names and authority. A health check should open TCP only.',
  tls_failed: 'Its TLS handshake is not valid.',
} as const satisfies Record<TlsFailure, string>

export const refusals = {
  ...tlsFailures,
  max_connections:
    'The limit ingest.broker.limits.max_connections is reached, or what the limit of open files leaves of it.',
  max_connections_per_address: 'The limit max_connections_per_address is reached.',
  max_connections_per_identity: 'The limit max_connections_per_identity is reached.',
  max_unauthenticated: 'The limit max_unauthenticated is reached.',
  max_unauthenticated_per_address: 'The limit max_unauthenticated_per_address is reached.',
  max_connects_per_s: 'The limit max_connects_per_s is reached.',
  max_connects_per_address_per_s: 'The limit max_connects_per_address_per_s is reached.',
  proxy_untrusted: 'It sends from an address that proxy_protocol.trusted of the listener does not list.',
  proxy_header_missing: 'It sent no PROXY protocol header, which the listener requires.',
  proxy_header_invalid: 'Its PROXY protocol header is not valid, or not of version 1 or 2.',
  not_http:
    'It does not speak HTTP to a listener for WebSocket (ws://, wss://). Set the device to WebSocket, or give it the port ' +
    'of a listener that it speaks: mqtt://, mqtts:// or wss://.',
  http_no_upgrade:
    'Its HTTP request to a listener for WebSocket does not ask for a WebSocket. A health check should open TCP only.',
  websocket_request: 'Its request for a WebSocket is not valid.',
  websocket_path: 'It asks for another path than that in the URL of the listener.',
  websocket_origin:
    'Its `Origin` is not in websocket.origins of the listener. Add that of a page that may connect. For a program that ' +
    'sends the origin of the listener itself (paho does), add the name of the listener to websocket.hosts.',
  websocket_protocol_missing:
    'It does not offer the subprotocol `mqtt` [MQTT-6.0.0-3]. Clients of MQTT 3.1 offer `mqttv3.1`: set the client to 3.1.1.',
  websocket_timeout: 'It did not ask for a WebSocket within connect_timeout.',
  no_client_id: 'It asks for a persistent session and gives no client id.',
  client_id_too_long: 'Its client id is longer than max_client_id_bytes.',
  session_not_stored:
    'Its session cannot be stored or deleted while the store of the spool is being reopened.',
  no_user_name: 'It gives no user name, and anonymous access is off.',
  bad_credentials: 'Its user name or password is wrong.',
  passwords_busy: 'Too many passwords wait to be checked (ingest.broker.passwords.max_waiting).',
  client_id_in_use:
    'A client with a user or a certificate is connected with its client id, and it gives neither.',
  wills_full: 'Its will has more than 1 KiB, and the wills of all open connections use 32 MiB.',
  authentication_method:
    'It asks for enhanced authentication (MQTT 5, 4.12), which the gateway does not have. Give it a user name and password.',
  will_retain:
    'Its will has the retain flag, which `ingest.broker.retain: refuse` refuses. Switch the flag off, or set `accept`.',
} as const

export type RefusalReason = keyof typeof refusals

/** What to do where the sentence above does not say it. */
export const refusalCures: Partial<Record<RefusalReason | ClientDropReason, string>> = {
  no_client_id: 'Give each device a client id of its own, or let it connect with Clean Session.',
  client_id_too_long: 'Shorten the client ids, or raise ingest.broker.limits.max_client_id_bytes.',
  session_not_stored:
    'Look at the conditions of the spool. The devices get in when the store is open again, without a change.',
  no_user_name:
    'Set user name and password in the devices, or allow them without: ingest.broker.access.anonymous, or `anonymous` in ' +
    '`access` of the listener.',
  wills_full: 'Shorten the wills of the devices. Those that have short ones are not refused.',
  passwords_busy:
    'The devices try again. If this lasts, give them longer back-off, or raise ingest.broker.passwords.max_waiting.',
  client_id_in_use: 'Give each device a client id of its own, or give this one the user of the other.',
  tls_client_certificate_untrusted:
    'Check the dates and the authority of the certificates, and add a missing authority to tls.client_ca.',
  connect_too_large: 'Shorten what the devices send, or raise ingest.broker.limits.max_connect_bytes.',
  tls_client_certificate_revoked: 'Give the devices new certificates, or correct tls.client_crl.',
}

/**
 * Where a connection breaks the protocol in a way that only its parser can name, the caller gives the
 * sentence.
 */
export const clientDrops = {
  not_connect: 'Its first packet is not CONNECT [MQTT-3.1.0-1].',
  not_from_client: 'It sent a packet type that clients do not send (MQTT 2.2.1).',
  connect_too_large: 'Its CONNECT is larger than max_connect_bytes.',
  packet_too_large: 'A packet is larger than max_packet_bytes.',
  malformed_length: 'The remaining length of a packet has more than four bytes (MQTT 2.2.3).',
  bad_client_id: 'Its client id contains a null character.',
  bad_topic: 'It published to a topic name that is not valid.',
  bad_will_topic: 'The topic name of its will is not valid.',
  no_packet_id: 'It sent a packet that needs a packet identifier without one, or with 0.',
  publish_before_connect: 'It published before its CONNECT was accepted.',
  too_many_qos2: 'It has too many QoS 2 messages without PUBREL.',
  acks_not_read: 'It did not read its acknowledgements within ack_timeout.',
  half_closed: 'It closed its side, and not all its acknowledgements could be sent within 5 s.',
  held_full: 'Its message has to wait for a full store, and max_held_messages or max_held_bytes is reached.',
  spool_write_failed: 'Its message could not be written to the spool.',
  connect_timeout: 'It did not send CONNECT within connect_timeout.',
  keepalive_timeout: 'It sent nothing for 1.5 times its keepalive.',
  protocol_error: 'It broke the MQTT protocol.',
  unsupported_level: 'It asks for a protocol level that does not exist.',
  tls_on_plain_port:
    'It speaks TLS to a listener without TLS (mqtt://). Give the device the port of an mqtts:// listener.',
  publish_refused: 'It published to a topic that it may not use (on_violation: close).',
  bad_user_name: 'Its user name contains a null character.',
  password_without_user: 'Its CONNECT has a password and no user name.',
  bad_will_qos: 'Its will has QoS 3, which does not exist.',
  bad_topic_filter: 'It subscribed to a topic filter that is not valid.',
  too_many_control_packets: 'It sent more control packets than max_control_packets_per_s.',
  partial_packets_full: 'Partial packets use all of max_partial_bytes.',
  packet_too_slow: 'A packet stopped for partial_timeout, or was slower than 256 bytes per second.',
  websocket_text: 'It sent a text frame over WebSocket: MQTT needs binary frames [MQTT-6.0.0-1].',
  websocket_protocol: 'It broke the WebSocket protocol.',
  idle_timeout: 'It has no keepalive and sent nothing for idle_timeout.',
  receive_maximum:
    'It published more messages without waiting for their acknowledgements than max_in_flight.',
  access_withdrawn:
    'Its user, token or certificate, or the rule that admitted it, is not valid any more since the last reload.',
  closed_by_operator: 'A person closed it (`clients kick`).',
  topic_alias: 'It used a topic alias that is 0, above max_topic_aliases, or without a topic.',
} as const

export type ClientDropReason = keyof typeof clientDrops

/** `code`: the reason code for a client of MQTT 5, where another than that of `reason` says it better. */
export type PacketFault = { reason: ClientDropReason; detail: string; code?: number }

/** How the connection of an admitted client ended that the gateway did not close for one of the above. */
export const disconnects = {
  disconnect: 'It sent DISCONNECT.',
  closed: 'It closed its connection without DISCONNECT.',
  connection_lost: 'Its connection broke.',
  taken_over: 'It connected again.',
  gateway_stopping: 'The gateway stops.',
} as const

export type DisconnectReason = keyof typeof disconnects
