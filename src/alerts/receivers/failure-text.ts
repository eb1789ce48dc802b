// failure-text.ts: why a receiver was not reached, in words, from the error of Node.

import { codeOf, messageOf } from '../../std/gateway-error.ts'

type Row = readonly [pattern: RegExp, why: string, act: string]

const checkAddress = 'Check host and port of the receiver, and that it runs.'
const checkAuthority = 'If the receiver has a certificate authority of its own, set its `ca`.'
const checkProxy = 'Check delivery.proxy, or set `proxy: none` for this receiver.'

const rows: readonly Row[] = [
  [
    /^(EMFILE|ENFILE)$/,
    'No file descriptor is left',
    'Nothing: it is tried again. If it continues, raise LimitNOFILE of the unit.',
  ],
  [/^TUNNEL_407$/, 'The proxy requires a user name and a password', 'Set delivery.proxy_auth.'],
  [/^TUNNEL_/, 'The proxy does not connect to the receiver', checkProxy],
  [
    /^ENOTFOUND$/,
    'The host name does not exist',
    'Check the spelling of the host name, and /etc/resolv.conf.',
  ],
  [
    /^EAI_\w+$/,
    'The host name cannot be resolved: no name server answers',
    'Check the network of this machine and /etc/resolv.conf.',
  ],
  [/^ECONNREFUSED$/, 'The connection was refused: nothing listens there', checkAddress],
  [
    /^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/,
    'The connection timed out',
    'Check whether a firewall drops the connection.',
  ],
  [
    /^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/,
    'There is no route to the host',
    'Check the network of this machine.',
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    'Its certificate is not valid yet, by the clock of this machine',
    'Check the clock of this machine.',
  ],
  [
    /^CERT_HAS_EXPIRED$/,
    'Its certificate has expired, by the clock of this machine',
    'Renew the certificate of the receiver. Check the clock of this machine.',
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
    'Its certificate is for another host name',
    checkAddress,
  ],
  [
    /^(UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|SELF_SIGNED|DEPTH_ZERO|CERT_SIGNATURE|CERT_UNTRUSTED)/,
    'Its certificate is signed by an unknown authority',
    checkAuthority,
  ],
  [
    /^(EPROTO$|ERR_SSL_)/,
    'The TLS handshake failed',
    'Check that the port of the receiver is one for TLS, and http:// or https:// in its url.',
  ],
  [
    /^(ECONNRESET|UND_ERR_SOCKET|EPIPE|HPE_\w+|ECONNABORTED)$/,
    'The connection broke before a complete answer',
    checkAddress,
  ],
]

export function failureOf(error: unknown): { why: string; act: string } {
  const codes = [codeOf(error), innerCode(error)].filter((code) => code !== undefined)
  const [, why, act] = rows.find(([pattern]) => codes.some((code) => pattern.test(code))) ?? []
  const detail = messageOf(error)
  if (why === undefined || act === undefined) return { why: detail, act: checkAddress }
  return { why: `${why} (${detail})`, act }
}

/** Whether a connection broke, so that it is not known what arrived before. */
export function isBroken(error: unknown): boolean {
  return brokenCodes.test(codeOf(error) ?? '')
}

const brokenCodes =
  /^(ECONNRESET|UND_ERR_SOCKET|EPIPE|ETIMEDOUT|ECONNECTION|ESOCKET|ABORT_ERR|UND_ERR_ABORTED|HPE_\w+)$/

/** A name with several addresses fails with one error for each. */
function innerCode(error: unknown): string | undefined {
  for (let one = error; one instanceof Error; one = one.cause)
    if (one instanceof AggregateError) return codeOf(one.errors[0])
  return undefined
}
