// network-cures.ts: what the errors of name resolution, TCP, TLS, WebSocket and of the first bytes mean, and
// what a person can do. The texts of Node and of mqtt.js are not shown; their code is, to search for it.

import { isIP } from 'node:net'
import { bounded, quote } from '../../../std/quote.ts'
import { defaultPorts, type BridgeUrl } from '../bridge-address.ts'
import type { Cure, FaultPlace } from './cures.ts'

type Row = readonly [pattern: RegExp, cure: (place: FaultPlace, error: unknown) => Cure]

const checkUrl = 'Check scheme, host and port in `url` of the bridge.'
const checkVersion = (isVersion5: boolean) =>
  isVersion5 ? ' If the broker does not know MQTT 5, set `protocol: 3.1.1`.' : ''

/** What a port that closes may be for. */
const otherPorts: Readonly<Record<BridgeUrl['scheme'], string>> = {
  mqtt: 'A port for TLS (usually 8883) needs mqtts://, one for WebSocket ws:// or wss://.',
  mqtts: 'A port without TLS (usually 1883) needs mqtt://, one for WebSocket wss://.',
  ws: 'A port for plain MQTT (usually 1883) needs mqtt://, one for TLS wss:// or mqtts://.',
  wss: 'A port without TLS needs ws://, one for plain MQTT mqtt:// or mqtts://.',
}

/** Codes of errors; the first match counts. */
const rows: readonly Row[] = [
  [
    /^ENOTFOUND$/,
    ({ url }) => ({
      why: `The host name ${quote(url.host, 200)} does not exist.`,
      act: 'Check the host in `url` of the bridge, and the name servers in /etc/resolv.conf.',
    }),
  ],
  [
    /^EAI_\w+$/,
    ({ url }) => ({
      why: `The host name ${quote(url.host, 200)} cannot be resolved: no name server answers.`,
      act: 'Check the network of this machine and /etc/resolv.conf.',
    }),
  ],
  [
    /^ECONNREFUSED$/,
    ({ url }) => ({ why: `Nothing listens on ${address(url)}.`, act: `Start the broker. ${checkUrl}` }),
  ],
  [
    /^ETIMEDOUT$/,
    ({ url }) => ({
      why: `There was no answer of ${address(url)} in connect_timeout.`,
      act: 'Check whether a firewall drops the connection, and the port: 1883 is usual for mqtt://, 8883 for mqtts://.',
    }),
  ],
  [
    /^NO_CONNACK$/,
    ({ url, isVersion5 }) => ({
      why: `${address(url)} accepts the connection, and sends no CONNACK in connect_timeout.`,
      act:
        `${checkUrl} ${otherPorts[url.scheme]}${checkVersion(isVersion5)} ` +
        'An overloaded broker does so, too.',
    }),
  ],
  [
    /^NO_SUBACK$/,
    () => ({
      why: 'The broker did not answer the subscription: there was no answer in connect_timeout.',
      act: 'Look into the log of the broker. If it is slow, raise `connect_timeout` of the bridge.',
    }),
  ],
  [
    /^KEEPALIVE$/,
    () => ({
      why: 'The broker did not answer PINGREQ in 1.5 times keepalive.',
      act: 'Check the network between this machine and the broker, and the load of both.',
    }),
  ],
  [
    /^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|EADDRNOTAVAIL)$/,
    ({ url }) => ({
      why: `There is no network route to ${url.host}.`,
      act: 'Check the network of this machine, its default route and its firewall.',
    }),
  ],
  [
    /^(EACCES|EPERM)$/,
    ({ url }) => ({
      why: `This machine does not allow a connection to ${address(url)}.`,
      act: 'Check the firewall of this machine, and IPAddressDeny in the unit of systemd.',
    }),
  ],
  [
    /^(EMFILE|ENFILE|ENOBUFS|ENOMEM)$/,
    () => ({
      why: 'This machine has no file handle or memory left for a connection.',
      act: 'Raise LimitNOFILE of the service, or free memory.',
    }),
  ],
  [
    /^(CERT_NOT_YET_VALID|CERT_HAS_EXPIRED)$/,
    () => ({
      why: 'The certificate of the broker is not valid now.',
      act: 'Check the time of this machine (timedatectl). If it is right, the broker must renew its certificate.',
    }),
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_(INVALID|FORMAT)|HOSTNAME_MISMATCH)$/,
    ({ url, tls }, error) => ({
      why: `The certificate of the broker is ${namesOf(error)}, not for ${tls.serverName ?? url.host}.`,
      act: 'Use a name of the certificate in `url`, or set it as `tls.server_name`.',
    }),
  ],
  [
    /^(UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|SELF_SIGNED|DEPTH_ZERO|CERT_SIGNATURE|CERT_UNTRUSTED|CERT_REJECTED)/,
    ({ tls }) => ({
      why:
        tls.ca === null
          ? 'The certificate of the broker is signed by an unknown authority.'
          : 'The certificate of the broker is not signed by the authority in `tls.ca`.',
      act: 'Set `tls.ca` to the certificate of the authority that signed it (${file:...}).',
    }),
  ],
  [
    /^(CERT_REVOKED|CRL_)/,
    () => ({
      why: 'The certificate of the broker is revoked.',
      act: 'The broker must get a new certificate.',
    }),
  ],
  // OpenSSL has several prefixes: `TLSV13_`, `SSL/TLS_`.
  [
    /ALERT_CERTIFICATE_EXPIRED$/,
    () => ({
      why: 'The broker says that the certificate of the gateway has expired.',
      act:
        'Renew the certificate, and replace the files of `tls.cert` and `tls.key`. If it is valid, the broker must set ' +
        'its clock.',
    }),
  ],
  [
    /ALERT_CERTIFICATE_REVOKED$/,
    () => ({
      why: 'The broker says that the certificate of the gateway is revoked.',
      act: 'Ask the operator of the broker for a new certificate, and replace the files of `tls.cert` and `tls.key`.',
    }),
  ],
  [
    /ALERT_(BAD_|NO_|UNSUPPORTED_)?CERTIFICATE|ALERT_(UNKNOWN_CA|ACCESS_DENIED|DECRYPT)/,
    ({ tls }) => ({
      why:
        tls.cert === null
          ? 'The broker requires a certificate of the gateway.'
          : 'The broker refuses the certificate of the gateway.',
      act: 'Set `tls.cert` and `tls.key` of the bridge to a certificate that the broker accepts: of its authority, and valid now.',
    }),
  ],
  [
    /UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|NO_PROTOCOLS|INAPPROPRIATE_FALLBACK/,
    () => ({
      why: 'The broker has no version of TLS that the gateway uses (TLS 1.2 and 1.3).',
      act: 'Allow TLS 1.2 or 1.3 at the broker.',
    }),
  ],
  [
    /(KEY|MD|DIGEST|DH)_TOO_(SMALL|WEAK)|ALERT_HANDSHAKE|NO_SHARED_CIPHER|INSUFFICIENT_SECURITY/,
    ({ tls }) => ({
      why: 'The broker and the gateway have no TLS settings that both accept.',
      act:
        'Use keys of at least 2048 bits and usual ciphers at the broker.' +
        (tls.cert === null ? ' If it requires a certificate, set `tls.cert` and `tls.key`.' : ''),
    }),
  ],
  [
    /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER))/,
    ({ url }) => ({
      why: `There is no TLS on ${address(url)}.`,
      act: `Use the port for TLS (usually ${url.scheme === 'wss' ? 443 : 8883}), or ${url.scheme === 'wss' ? 'ws' : 'mqtt'}:// where no TLS is wanted.`,
    }),
  ],
  [
    /^(ERR_OSSL|ERR_CRYPTO|ERR_TLS_INVALID|ERR_MISSING_PASS|ERR_INVALID_ARG)/,
    () => ({
      why: 'A certificate or key of the bridge cannot be read.',
      act:
        'Check `tls.ca`, `tls.cert` and `tls.key` of the bridge: they must be PEM texts, and the key without passphrase. ' +
        '`${file:PATH}` reads a file.',
    }),
  ],
  [
    /^(ERR_TLS|ERR_SSL|CERT_|INVALID_|UNABLE_TO|UNHANDLED|PATH_LENGTH|HOSTNAME|ERROR_IN|EE_|CA_)/,
    () => ({
      why: 'The TLS connection cannot be made.',
      act: 'Check `tls` of the bridge and the certificate of the broker (openssl s_client -connect HOST:PORT).',
    }),
  ],
  [
    /^HPE_/,
    ({ url }) => ({
      why: `The answer of ${address(url)} is not HTTP, so it is no WebSocket.`,
      act: `${checkUrl} A port for plain MQTT needs mqtt:// or mqtts://.`,
    }),
  ],
  [
    /^WS_ERR_/,
    () => ({
      why: 'The broker sends what WebSocket does not allow.',
      act: 'Look into the log of the broker, and of a proxy before it.',
    }),
  ],
  [
    /^malformed_packet$/,
    () => ({
      why: 'The broker sent a packet that breaks the protocol.',
      act: 'Look into the log of the broker. If one message is the cause, remove it there; the gateway cannot skip it.',
    }),
  ],
  [
    /^TOO_MANY_PACKETS$/,
    () => ({
      why: 'The broker sends more packets than a broker needs, and they are no messages.',
      act: 'Look into the log of the broker, and of a proxy before it: something there sends packets without end.',
    }),
  ],
  [
    /^packet_too_large$/,
    () => ({
      why: 'The broker sent a packet that is larger than max_packet_bytes, and it is no message.',
      act: 'Raise `max_packet_bytes` of the bridge, or correct scheme and port in `url` if this is no MQTT broker.',
    }),
  ],
]

/** `code`: of an error of Node or of ours. Null where it is not known. */
export function networkCure(code: string, place: FaultPlace, error: unknown): Cure | null {
  return rows.find(([pattern]) => pattern.test(code))?.[1](place, error) ?? null
}

/** The connection was closed or reset. */
export function closedCure({ stage, url, isVersion5 }: FaultPlace): Cure {
  if (stage === 'connecting')
    return {
      why: `The broker closes the connection to ${address(url)} without an answer.`,
      act: `${checkUrl} ${otherPorts[url.scheme]}${checkVersion(isVersion5)}`,
    }
  if (stage === 'subscribing')
    return {
      why: 'The broker accepts the connection, and closes it at the subscription.',
      act: 'Check that the user may read `topics` of the bridge, and that no other client has the same client id.',
    }
  return {
    why: 'The connection was closed by the broker or the network.',
    act: 'Nothing, if the bridge connects again. If it repeats, look into the log of the broker.',
  }
}

/** An HTTP status in place of a WebSocket. */
export function upgradeCure(status: number, { url }: FaultPlace): Cure {
  const why = `${address(url)} answers with the HTTP status ${status} on the path ${quote(url.path, 100)}, and opens no WebSocket.`
  if (status === 401 || status === 403)
    return { why, act: 'Ask the operator of the broker which path and which user are for MQTT.' }
  if (status >= 300 && status < 400)
    return { why, act: 'Set `url` of the bridge to the final address; the gateway follows no redirection.' }
  if (status >= 500) return { why, act: 'Check that the broker behind this server runs.' }
  return { why, act: 'Check the path in `url` of the bridge, often /mqtt.' }
}

const firstBytes: readonly (readonly [start: string, what: string, act: string])[] = [
  ['HTTP/', 'an HTTP server', 'Use the MQTT port of the broker, or ws:// or wss:// for MQTT over WebSocket.'],
  // An alert and a handshake.
  ['\x15\x03', 'TLS', 'Use mqtts:// (wss:// for WebSocket).'],
  ['\x16\x03', 'TLS', 'Use mqtts:// (wss:// for WebSocket).'],
  ['AMQP', 'AMQP', 'Use the MQTT port of the broker, usually 1883; 5672 is that of AMQP.'],
  [
    'INFO ',
    'the own protocol of NATS',
    'Use the MQTT port of NATS, usually 1883; 4222 is that of its own protocol.',
  ],
  ['SSH-', 'SSH', checkUrl],
  ['220', 'a mail or FTP server', checkUrl],
]

/** What answers in place of a broker. */
export function notMqttCure(start: string, { url }: FaultPlace): Cure {
  const known = firstBytes.find(([bytes]) => start.startsWith(bytes))
  const what = known === undefined ? '' : `: it is ${known[1]}`
  return {
    why: `The answer of ${address(url)} is not MQTT${what}.`,
    act: known?.[2] ?? `${checkUrl} Usual ports: 1883 for mqtt://, 8883 for mqtts://.`,
  }
}

export function address({ host, port, scheme }: BridgeUrl): string {
  const name = isIP(host) === 6 ? `[${host}]` : host
  return `${bounded(name, 200)}:${port === 0 ? defaultPorts[scheme] : port}`
}

/** The names in a certificate that does not fit. */
function namesOf(error: unknown): string {
  const { cert } = error as { cert?: { subjectaltname?: string; subject?: { CN?: string } } }
  const names = cert?.subjectaltname?.replaceAll(/(DNS|IP Address):/g, '') ?? cert?.subject?.CN
  return names === undefined || names === '' ? 'for another name' : `for ${quote(names, 100)}`
}
