// unreachable.ts: why no answer came, in words that tell apart what a person has to look at.

import type { EpochMs } from '../../std/clock.ts'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { Outcome, UnreachableReason } from '../../domain/outcome.ts'

type Row = readonly [pattern: RegExp, reason: UnreachableReason, words: string, act: string]

const setClock = 'Set the time of this machine (timedatectl, chrony); sending goes on by itself then.'
const askProxy = 'Ask whoever runs the proxy to allow CONNECT to the host and port of delivery.base_url.'
const privateAuthority =
  'Where the service, or a proxy that looks into TLS, has an authority of its own, set delivery.tls.ca.'
const clientCertificate = 'Set delivery.tls.cert and delivery.tls.key to those that the service knows.'
const checkAddress = 'Check the host, the port and https:// in delivery.base_url.'
const checkWay = 'Check the network of this machine, its gateway and its firewall.'

/** The first that fits. `{now}` is the time by our clock. */
const rows: readonly Row[] = [
  [/^TUNNEL_407$/, 'proxy', 'the proxy wants a name and a password', 'Set delivery.proxy_auth to them.'],
  [/^TUNNEL_(502|503|504)$/, 'proxy', 'the proxy cannot reach the service', checkAddress],
  [/^TUNNEL_\d+$/, 'proxy', 'the proxy refuses the way to the service', askProxy],
  [/^TUNNEL_/, 'proxy', 'the proxy cannot be reached', 'Check delivery.proxy, or HTTPS_PROXY and NO_PROXY.'],
  [
    /^ENOTFOUND$/,
    'dns',
    'the name cannot be resolved: nobody knows it',
    'Check the spelling of delivery.base_url, and /etc/resolv.conf.',
  ],
  [
    /^EAI_\w+$/,
    'dns',
    'the name cannot be resolved: no name server answers',
    'Check the network of this machine and /etc/resolv.conf.',
  ],
  [/^ECONNREFUSED$/, 'refused', 'nothing listens at that address', checkAddress],
  [
    /^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/,
    'timeout',
    'no connection in time',
    'A firewall may drop it silently; where the way out is a proxy, set delivery.proxy.',
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    'clock',
    'our clock says {now}, and by that the certificate of the service is not valid yet',
    setClock,
  ],
  [
    /^CERT_HAS_EXPIRED$/,
    'clock',
    'our clock says {now}, and by that the certificate of the service has expired',
    `${setClock} Where the time is right, the service must renew its certificate.`,
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
    'tls',
    'TLS failed: the certificate is for other names',
    checkAddress,
  ],
  [
    /^(UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|SELF_SIGNED|DEPTH_ZERO|CERT_SIGNATURE|CERT_UNTRUSTED)/,
    'tls',
    'TLS failed: the certificate is of an authority that we do not know',
    privateAuthority,
  ],
  [
    /^ERR_SSL_(TLSV?\d*_|SSLV3_)?ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE)/,
    'tls',
    'TLS failed: the service refuses our certificate, or wants one',
    clientCertificate,
  ],
  [
    /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST))/,
    'tls',
    'TLS failed: what answers there does not speak it',
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
    'the connection was cut',
    'Nothing, if it passes. Else something between the service and us cuts it.',
  ],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN)$/, 'other', 'there is no route', checkWay],
  [/^(HPE_|HTTPParserError$)/, 'other', 'the answer is not HTTP', checkAddress],
]

/** `at`: the time by our wall clock. */
export function unreachable(error: unknown, at: EpochMs): Extract<Outcome, { kind: 'unreachable' }> {
  // Where a name has several addresses, each failed in its own way and the first one stands for all.
  const cause = error instanceof AggregateError && codeOf(error) === undefined ? error.errors[0] : error
  const code = codeOf(cause) ?? (cause instanceof Error ? cause.name : '')
  const detail = `(${code === '' ? '' : `${code}: `}${messageOf(cause)})`
  const row = rows.find(([pattern]) => pattern.test(code))
  if (row === undefined) return { kind: 'unreachable', reason: 'other', message: `it failed ${detail}` }
  const [, reason, words, act] = row
  const now = new Date(at).toISOString().slice(0, 19)
  return { kind: 'unreachable', reason, message: `${words.replace('{now}', `${now}Z`)} ${detail}`, act }
}
