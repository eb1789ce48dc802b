// unreachable.ts: why no answer came, with what a person can check.

import type { EpochMs } from '../../std/clock.ts'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { Outcome, UnreachableReason } from '../../domain/outcome.ts'

type Row = readonly [pattern: RegExp, reason: UnreachableReason, words: string, act: string]

const setClock = 'Set the time of this machine (timedatectl, chrony). Sending then resumes automatically.'
const askProxy = 'Ask the operator of the proxy to allow CONNECT to the host and port of delivery.base_url.'
const privateAuthority =
  'If the service, or a proxy that inspects TLS, has a certificate authority of its own, set delivery.tls.ca.'
const clientCertificate =
  'Set delivery.tls.cert and delivery.tls.key to a certificate that the service accepts.'
const checkAddress = 'Check the host, the port and https:// in delivery.base_url.'
const checkNetwork = 'Check the network of this machine, its default route and its firewall.'

/** The first match counts. `{now}` is the time of our clock. */
const rows: readonly Row[] = [
  [/^TUNNEL_407$/, 'proxy', 'the proxy requires a user name and a password', 'Set delivery.proxy_auth.'],
  [/^TUNNEL_(502|503|504)$/, 'proxy', 'the proxy cannot reach the service', checkAddress],
  [/^TUNNEL_\d+$/, 'proxy', 'the proxy refuses a connection to the service', askProxy],
  [/^TUNNEL_/, 'proxy', 'the proxy is not reachable', 'Check delivery.proxy, or HTTPS_PROXY and NO_PROXY.'],
  [
    /^ENOTFOUND$/,
    'dns',
    'the host name does not exist',
    'Check the spelling of delivery.base_url, and /etc/resolv.conf.',
  ],
  [
    /^EAI_\w+$/,
    'dns',
    'the host name cannot be resolved: no name server answers',
    'Check the network of this machine and /etc/resolv.conf.',
  ],
  [
    /^ECONNREFUSED$/,
    'refused',
    'the connection was refused: nothing listens on this host and port',
    checkAddress,
  ],
  [
    /^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/,
    'timeout',
    'the connection timed out',
    'Check whether a firewall drops the connection. If a proxy is required, set delivery.proxy.',
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    'clock',
    'the clock of this machine says {now}, when the certificate of the service is not valid yet',
    setClock,
  ],
  [
    /^CERT_HAS_EXPIRED$/,
    'clock',
    'the clock of this machine says {now}, when the certificate of the service has expired',
    `${setClock} If the time is right, the service must renew its certificate.`,
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
    'tls',
    'TLS failed: the certificate is for another host name',
    checkAddress,
  ],
  [
    /^(UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|SELF_SIGNED|DEPTH_ZERO|CERT_SIGNATURE|CERT_UNTRUSTED)/,
    'tls',
    'TLS failed: the certificate is signed by an unknown authority',
    privateAuthority,
  ],
  [
    /^ERR_SSL_(TLSV?\d*_|SSLV3_)?ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE)/,
    'tls',
    'TLS failed: the service refuses our certificate, or requires one',
    clientCertificate,
  ],
  [
    /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST))/,
    'tls',
    'TLS failed: the server does not use TLS on this port',
    checkAddress,
  ],
  [
    /^(ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO|ERR_OSSL|INVALID_CA|PATH_LENGTH)/,
    'tls',
    'TLS failed',
    checkAddress,
  ],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ECONNABORTED)$/,
    'reset',
    'the connection was closed',
    'Nothing if it happens rarely. Otherwise check what closes connections between this machine and the service.',
  ],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN)$/, 'other', 'there is no network route', checkNetwork],
  [/^(HPE_|HTTPParserError$)/, 'other', 'the answer is not HTTP', checkAddress],
]

/** `at`: the time of our wall clock. */
export function unreachable(error: unknown, at: EpochMs): Extract<Outcome, { kind: 'unreachable' }> {
  // A name with several addresses fails once for each; the first failure is reported.
  const cause = error instanceof AggregateError && codeOf(error) === undefined ? error.errors[0] : error
  const code = codeOf(cause) ?? (cause instanceof Error ? cause.name : '')
  // Messages of OpenSSL end with a line break.
  const detail = `(${code === '' ? '' : `${code}: `}${messageOf(cause).trim()})`
  const row = rows.find(([pattern]) => pattern.test(code))
  if (row === undefined)
    return { kind: 'unreachable', reason: 'other', message: `the request failed ${detail}` }
  const [, reason, words, act] = row
  const now = new Date(at).toISOString().slice(0, 19)
  return { kind: 'unreachable', reason, message: `${words.replace('{now}', `${now}Z`)} ${detail}`, act }
}
