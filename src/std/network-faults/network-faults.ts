// network-faults.ts: what the errors of name resolution, TCP, TLS and of a proxy mean, and what a person can
// do: the one table for delivery, alerts and bridges. The names of their options come with the place. The
// entry file of the folder; address-attempts.ts: how long each address of a name is tried.
//
// The texts of Node are not used; the code is, to search for it. OpenSSL's reason is, where it alone knows.

import { isIPv6 } from 'node:net'
import { zonedTime } from '../clock.ts'
import { codeOf, messageOf } from '../gateway-error.ts'
import { bounded, quote } from '../quote.ts'

export type NetworkReason = 'timeout' | 'reset' | 'refused' | 'dns' | 'tls' | 'clock' | 'proxy' | 'other'

/** Where it happened. */
export type NetworkPlace = {
  /** The other side, in a sentence: `the service`. */
  peer: string
  host: string
  /** HOST:PORT. */
  address: string
  /** The name that its certificate must have. */
  name: string
  /** What is configured. */
  hasCa: boolean
  hasCert: boolean
  /** Names of the options, as a person writes them. `ports`: which port is usual, in a sentence. */
  options: { url: string; ca: string; cert: string; limit: string; name?: string; proxy?: string }
  ports?: string
}

/** `why` is a sentence without its full stop. `tried`: the addresses of a name and their failures, or ''. */
export type NetworkFault = { code: string; reason: NetworkReason; why: string; act: string; tried: string }

type Text = string | ((place: NetworkPlace, error: unknown) => string)
type Row = readonly [pattern: RegExp, reason: NetworkReason, why: Text, act: Text]

const checkAddress = 'Check scheme, host and port in {url}.{ports}'
const checkNetwork = 'Check the network of this machine, its default route and its firewall.'
const setClock =
  'Set the time of this machine (timedatectl, chrony); then it continues by itself. If the time is right, {peer} must ' +
  'renew its certificate.'
const strongCertificate = 'a key of at least 2048 bits (RSA) and a signature by SHA-256'

/** By the code of the error; the first match counts. */
const rows: readonly Row[] = [
  [/^TUNNEL_407$/, 'proxy', 'The proxy requires a user name and a password', 'Set {proxy}_auth.'],
  [/^TUNNEL_(502|503|504)$/, 'proxy', 'The proxy cannot reach {peer}', checkAddress],
  [
    /^TUNNEL_\d+$/,
    'proxy',
    'The proxy refuses a connection to {peer}',
    'Ask the operator of the proxy to allow CONNECT to the host and port of {url}.',
  ],
  [
    /^TUNNEL_TIMEOUT$/,
    'timeout',
    'The proxy opened no connection to {peer} in {limit}',
    'Check {proxy}, or HTTPS_PROXY and NO_PROXY. On a link with a long delay, raise {limit}.',
  ],
  [/^TUNNEL_/, 'proxy', 'The proxy is not reachable', 'Check {proxy}, or HTTPS_PROXY and NO_PROXY.'],
  [
    /^ENOTFOUND$/,
    'dns',
    'The host name {host} does not exist',
    'Check the host in {url}, and the name servers in /etc/resolv.conf.',
  ],
  [
    /^EAI_\w+$/,
    'dns',
    'The host name {host} cannot be resolved: no name server answers',
    'Check the network of this machine and /etc/resolv.conf.',
  ],
  [/^ECONNREFUSED$/, 'refused', 'Nothing listens on {address}', `Check that {peer} runs. ${checkAddress}`],
  [
    /^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/,
    'timeout',
    'There was no answer of {address} in {limit}',
    ({ options: { proxy, limit } }) =>
      'Check whether a firewall drops the connection.{ports}' +
      (proxy === undefined ? '' : ` If a proxy is required, set ${proxy}.`) +
      ` On a link with a long delay, raise ${limit}.`,
  ],
  [
    /^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|EADDRNOTAVAIL)$/,
    'other',
    'There is no network route to {host}',
    checkNetwork,
  ],
  [
    /^(EACCES|EPERM)$/,
    'other',
    'This machine does not allow a connection to {address}',
    'Check the firewall of this machine, and IPAddressDeny in the unit of systemd.',
  ],
  [
    /^(EMFILE|ENFILE|ENOBUFS|ENOMEM)$/,
    'other',
    'This machine has no file handle or memory left for a connection',
    'Raise LimitNOFILE of the service, or free memory.',
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    'clock',
    'The clock of this machine says {now}, when the certificate of {peer} is not valid yet',
    setClock,
  ],
  [
    /^CERT_HAS_EXPIRED$/,
    'clock',
    'The clock of this machine says {now}, when the certificate of {peer} has expired',
    setClock,
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_(INVALID|FORMAT)|HOSTNAME_MISMATCH)$/,
    'tls',
    ({ name }, error) => `The certificate of {peer} is ${namesOf(error)}, not for ${name}`,
    ({ options }) =>
      `Use a name of the certificate in {url}${options.name === undefined ? '' : `, or set it as ${options.name}`}.`,
  ],
  // One certificate came, and its issuer is not known: as with an authority of its own, so with a server that
  // keeps its intermediate certificates to itself.
  [
    /^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/,
    'tls',
    ({ hasCa, options }) =>
      '{Peer} sends its own certificate and no intermediate one, and it is not signed by ' +
      (hasCa ? `the authority in ${options.ca}` : 'a public authority'),
    '{Peer} must send the whole chain (openssl s_client -showcerts -connect {address} shows what it sends). If it has an ' +
      'authority of its own, set {ca} to the certificate of that.',
  ],
  [
    /^(UNABLE_TO_GET_ISSUER|SELF_SIGNED|DEPTH_ZERO|CERT_SIGNATURE|CERT_UNTRUSTED|CERT_REJECTED)/,
    'tls',
    ({ hasCa, options }) =>
      hasCa
        ? `The certificate of {peer} is not signed by the authority in ${options.ca}`
        : 'The certificate of {peer} is signed by an unknown authority',
    'If {peer}, or a proxy that inspects TLS, has an authority of its own, set {ca} to the certificate of that.',
  ],
  [/^(CERT_REVOKED|CRL_)/, 'tls', 'The certificate of {peer} is revoked', '{Peer} needs a new certificate.'],
  [
    /^(UNSPECIFIED|INVALID_PURPOSE|INVALID_CA|PATH_LENGTH_EXCEEDED|CERT_CHAIN_TOO_LONG)$/,
    'tls',
    (_place, error) => `OpenSSL does not accept the certificate of {peer}: ${opensslReason(error)}`,
    `{Peer} needs a certificate for servers (extended key usage serverAuth), with ${strongCertificate}.`,
  ],
  // OpenSSL has several prefixes: `TLSV13_`, `SSL/TLS_`.
  [
    /ALERT_CERTIFICATE_EXPIRED$/,
    'tls',
    '{Peer} says that the certificate of the gateway has expired',
    'Renew the certificate, and replace the files of {cert}. If it is valid, {peer} must set its clock.',
  ],
  [
    /ALERT_CERTIFICATE_REVOKED$/,
    'tls',
    '{Peer} says that the certificate of the gateway is revoked',
    'Ask the operator of {peer} for a new certificate, and replace the files of {cert}.',
  ],
  [
    /ALERT_(BAD_|NO_|UNSUPPORTED_)?CERTIFICATE|ALERT_(UNKNOWN_CA|ACCESS_DENIED|DECRYPT)/,
    'tls',
    ({ hasCert }) => `{Peer} ${hasCert ? 'refuses the' : 'requires a'} certificate of the gateway`,
    'Set {cert} to a certificate that {peer} accepts: of its authority, for clients (extended key usage clientAuth), ' +
      `valid now, with ${strongCertificate}.`,
  ],
  [
    /UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|NO_PROTOCOLS|INAPPROPRIATE_FALLBACK/,
    'tls',
    '{Peer} has no version of TLS that the gateway uses (TLS 1.2 and 1.3)',
    'Allow TLS 1.2 or 1.3 there.',
  ],
  [
    /(KEY|MD|DIGEST|DH)_TOO_(SMALL|WEAK)|ALERT_HANDSHAKE|NO_SHARED_CIPHER|INSUFFICIENT_SECURITY/,
    'tls',
    '{Peer} and the gateway have no TLS settings that both accept',
    ({ hasCert }) =>
      'Use keys of at least 2048 bits and usual ciphers there.' +
      (hasCert ? '' : ' If {peer} requires a certificate, set {cert}.'),
  ],
  [
    /^(EPROTO$|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER))/,
    'tls',
    'There is no TLS on {address}',
    `Use the port for TLS, or a URL without TLS. ${checkAddress}`,
  ],
  [
    /^(ERR_OSSL|ERR_CRYPTO|ERR_TLS_INVALID|ERR_MISSING_PASS|ERR_INVALID_ARG)/,
    'tls',
    'A certificate or key in the config cannot be read',
    'Check {ca} and {cert}: they must be PEM texts, and the key without passphrase. `${file:PATH}` reads a file.',
  ],
  [
    /^(ERR_TLS|ERR_SSL|CERT_|CRL_|INVALID_|UNABLE_TO|UNHANDLED|PATH_LENGTH|HOSTNAME|ERROR_IN|EE_|CA_)/,
    'tls',
    'The TLS connection cannot be made',
    'Check {url}, {ca} and the certificate of {peer} (openssl s_client -connect {address}).',
  ],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ECONNABORTED)$/,
    'reset',
    'The connection was closed',
    'Nothing if it happens rarely. Otherwise check what closes connections between this machine and {peer}.',
  ],
  [/^(HPE_|HTTPParserError$)/, 'other', 'The answer of {address} is not HTTP', checkAddress],
]

/** Null where the code of the error is not known. `code`: where the caller knows a better one. */
export function networkFault(
  thrown: unknown,
  place: NetworkPlace,
  { code: given, at = Date.now() }: { code?: string; at?: number } = {},
): NetworkFault | null {
  const { cause, tried } = attemptsOf(thrown)
  const code = given ?? codeOf(cause) ?? (cause instanceof Error ? cause.name : '')
  const row = rows.find(([pattern]) => pattern.test(code))
  if (row === undefined) return null
  const { peer, host, address, options, ports } = place
  const Peer = peer.charAt(0).toUpperCase() + peer.slice(1)
  const now = zonedTime(at)
  const own = { peer, Peer, address, now, host: quote(host), ports: ports === undefined ? '' : ` ${ports}` }
  const words: Record<string, string> = { ...own, ...options }
  const said = (text: Text) => {
    const template = typeof text === 'string' ? text : text(place, cause)
    return template.replaceAll(/(?<!\$)\{(\w+)\}/g, (all, word: string) => words[word] ?? all)
  }
  return { code, reason: row[1], why: said(row[2]), act: said(row[3]), tried }
}

/** A name with several addresses fails once for each. `cause`: the failure that says most. */
export function attemptsOf(thrown: unknown): { cause: unknown; tried: string } {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (!(error instanceof AggregateError)) continue
    const failures = error.errors as { code?: string; address?: string; port?: number }[]
    const shown = failures.map(({ code = 'failed', address, port }) =>
      address === undefined ? code : `${isIPv6(address) ? `[${address}]` : address}:${port} ${code}`,
    )
    const [cause] = failures.toSorted((one, other) => saysLittle(one) - saysLittle(other))
    return { cause, tried: bounded(`tried ${shown.join(', ')}`, 400) }
  }
  return { cause: thrown, tried: '' }
}

/** An address that is not routed, then one that does not answer, say less than a refusal. */
function saysLittle({ code = '' }: { code?: string }): number {
  return /^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/.test(code) ? 2 : code === 'ETIMEDOUT' ? 1 : 0
}

/** The names in a certificate that does not fit. */
function namesOf(error: unknown): string {
  const { cert } = error as { cert?: { subjectaltname?: string; subject?: { CN?: string } } }
  const names = cert?.subjectaltname?.replaceAll(/(DNS|IP Address):/g, '') ?? cert?.subject?.CN
  return names === undefined || names === '' ? 'for another name' : `for ${quote(names, 100)}`
}

/** Errors of a handshake have it apart from a text with files and lines of OpenSSL. */
function opensslReason(error: unknown): string {
  const { reason } = error as { reason?: unknown }
  return bounded(typeof reason === 'string' ? reason : messageOf(error), 100)
}
