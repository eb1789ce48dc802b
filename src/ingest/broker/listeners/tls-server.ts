// tls-server.ts: TLS of a listener: certificate and key of the gateway, authorities and revocation lists of
// client certificates, and the name in a client certificate. `renew` puts new ones in force for the next
// handshakes. Session tickets of before are not valid any more, so a client whose
// certificate was revoked meanwhile needs a full handshake.

import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { getDefaultHighWaterMark, setDefaultHighWaterMark } from 'node:stream'
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Secret } from '../../../std/secret.ts'
import { pemPartsProblem } from '../../../std/tls/pem.ts'

/** Which part of a client certificate is its name. */
export const certificateNames = ['cn', 'dns', 'uri', 'email'] as const

export type ListenerTls = {
  /** PEM texts: certificate chain and private key of the gateway. */
  cert: string
  key: Secret
  /** Authorities of client certificates; where set, a client without one of theirs is refused. */
  clientCa: string | null
  /** Their revocation lists; certificates in them are refused. */
  clientCrl: string | null
  certificateName: (typeof certificateNames)[number]
}

/** `socketOptions` are those of the server that accepts the connections. */
export function createTlsServer(
  tls: ListenerTls,
  socketOptions: TlsOptions,
  handshakeTimeoutMs: number,
): { server: Server; renew: (next: ListenerTls) => void } {
  const server = createServer({
    ...socketOptions,
    ...contextOf(tls),
    handshakeTimeout: handshakeTimeoutMs,
    ...(tls.clientCa === null ? {} : { requestCert: true, rejectUnauthorized: true }),
  })
  return { server, renew: (next) => server.setSecureContext(contextOf(next)) }
}

/**
 * Gives a connection to a TLS server. Its TLS socket is created meanwhile, and takes its bounds from the
 * default of the streams alone: tls.Server has no option for them. 64 KiB is the default of Node.
 */
export function beginTls(server: Server, socket: Socket, bufferBytes: number): void {
  const before = getDefaultHighWaterMark(false)
  setDefaultHighWaterMark(false, bufferBytes)
  try {
    server.emit('connection', socket)
  } finally {
    setDefaultHighWaterMark(false, before)
  }
}

function contextOf({ cert, key, clientCa, clientCrl }: ListenerTls) {
  return {
    cert,
    key: key.reveal(),
    ...(clientCa === null ? {} : { ca: clientCa }),
    ...(clientCrl === null ? {} : { crl: clientCrl }),
  }
}

/** What is wrong with certificate, key, authorities or revocation lists; null where they can be used. */
export function tlsProblem({ cert, key, clientCa, clientCrl }: ListenerTls): string | null {
  return pemPartsProblem({
    cert,
    key: key.reveal(),
    ca: clientCa ?? undefined,
    crl: clientCrl ?? undefined,
  })
}

/** The name in a certificate that a configured authority signed; the first one where it has several. */
export function certificateNameOf(socket: TLSSocket, which: ListenerTls['certificateName']): string | null {
  if (!socket.authorized) return null
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return null
  const name = which === 'cn' ? commonNameOf(certificate) : alternativeNameOf(certificate, which)
  return name === null || name === '' ? null : name
}

/** Null where there are several: it would not be clear which one is meant. */
function commonNameOf(certificate: X509Certificate): string | null {
  const { subject } = certificate.toLegacyObject()
  const name: unknown = subject?.CN
  return typeof name === 'string' ? name : null
}

/** `DNS:a, URI:"with, comma"`: Node quotes what could be taken for several names. */
function alternativeNameOf({ subjectAltName = '' }: X509Certificate, which: string): string | null {
  for (const [, kind = '', text = ''] of subjectAltName.matchAll(
    /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,]*)/g,
  )) {
    if (kind.toLowerCase() !== which) continue
    return text.startsWith('"') ? (JSON.parse(text) as string) : text
  }
  return null
}
