// tls.ts: why a TLS handshake on a listener failed, as a stable code, from the error of Node.
//
// The client sends an alert where it does not accept our certificate. Some clients, Node among them, close
// the connection instead: `tls_closed`.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { codeOf, messageOf } from '../gateway-error.ts'

export type TlsFailure =
  | 'tls_server_certificate_expired'
  | 'tls_server_certificate_untrusted'
  | 'tls_server_certificate_rejected'
  | 'tls_no_common_version'
  | 'tls_no_common_cipher'
  | 'tls_client_certificate_missing'
  | 'tls_client_certificate_untrusted'
  | 'tls_client_certificate_expired'
  | 'tls_client_certificate_revoked'
  | 'tls_client_certificate_purpose'
  | 'tls_client_certificate_weak'
  | 'tls_revocation_list_expired'
  | 'not_tls'
  | 'http_on_tls_port'
  | 'tls_timeout'
  | 'tls_closed'
  /** The handshake is complete, and no CONNECT came. */
  | 'tls_unused'
  | 'tls_failed'

/** The texts of OpenSSL, which are the same in its error codes and its messages. The first that matches. */
const patterns: readonly [RegExp, TlsFailure][] = [
  [/alert certificate expired/, 'tls_server_certificate_expired'],
  [/alert unknown ca\b/, 'tls_server_certificate_untrusted'],
  [
    /alert (bad|unsupported) certificate|alert certificate (revoked|unknown)/,
    'tls_server_certificate_rejected',
  ],
  [/wrong version number|packet length too long|https proxy request/, 'not_tls'],
  [/http request/, 'http_on_tls_port'],
  [
    /unsupported protocol|alert protocol version|version too low|no protocols available/,
    'tls_no_common_version',
  ],
  [/no shared cipher|no suitable|no shared group|alert handshake failure/, 'tls_no_common_cipher'],
  [/peer did not return a certificate/, 'tls_client_certificate_missing'],
  [/handshake timeout/, 'tls_timeout'],
  [/econnreset|epipe|socket hang up|unexpected eof|etimedout/, 'tls_closed'],
]

/** What Node says of a client certificate that it does not accept. */
const verifications: Record<string, TlsFailure> = {
  CERT_HAS_EXPIRED: 'tls_client_certificate_expired',
  CERT_REVOKED: 'tls_client_certificate_revoked',
  CRL_HAS_EXPIRED: 'tls_revocation_list_expired',
  INVALID_PURPOSE: 'tls_client_certificate_purpose',
  // Node has no code of its own for keys and signatures that OpenSSL does not accept.
  UNSPECIFIED: 'tls_client_certificate_weak',
}

export function tlsFailureOf(error: Error, { authorizationError }: TLSSocket): TlsFailure {
  // Node has it for each connection, null where nothing is wrong.
  const verification = authorizationError as unknown
  if (typeof verification === 'string' && verification !== '')
    return verifications[verification] ?? 'tls_client_certificate_untrusted'
  const text = `${codeOf(error) ?? ''} ${messageOf(error)}`.toLowerCase().replaceAll('_', ' ')
  return patterns.find(([pattern]) => pattern.test(text))?.[1] ?? 'tls_failed'
}

/**
 * The TCP socket of a TLS socket. Node does not document `_parent`. It is the only link where the handshake
 * has failed: both are closed then, and the TLS socket has no addresses.
 */
export function carrierOf(socket: TLSSocket): Socket | null {
  return (socket as TLSSocket & { _parent?: Socket })._parent ?? null
}

/** A check whether the port is open, of a balancer for example: it closed its connection and sent nothing. */
export function isPortCheck(reason: TlsFailure, socket: TLSSocket): boolean {
  return reason === 'tls_closed' && carrierOf(socket)?.bytesRead === 0
}
