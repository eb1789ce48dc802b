// sign.ts: SigV4a over a request, made immediately before it is sent (ingestion-api.md 5).
//
// @smithy/signature-v4a does the signing: canonical request, scope, headers. node:crypto replaces two of its
// parts, which are pure JavaScript and cost more than all the rest: the hash (passed in as a class) and the
// ECDSA (the private getSignature; test/delivery/transport/sign.test.ts fails where an update of the package
// changes it). The hash of the body is passed in as a header, computed here in one native call. The package
// derives the signing key again for each request, by an HMAC that costs nearly as much as the signature: it
// is kept with the signer.

import { createECDH, createHmac, createPrivateKey, hash, sign as signNatively } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { SignatureV4a } from '@smithy/signature-v4a'
import type { HttpRequest, SourceData } from '@smithy/types'
import type { EpochMs } from '../../std/clock.ts'
import type { Credentials } from '../credentials/access-keys.ts'

type UnsignedRequest = {
  method: 'POST'
  protocol: string
  hostname: string
  /** The Host header: with the port, unless it is the default of the protocol. */
  host: string
  path: string
  headers: Record<string, string>
  body: Uint8Array
}

/** The headers to send: the given ones and those of the signature. */
export type Sign = (request: UnsignedRequest, signingAt: EpochMs) => Promise<Record<string, string>>

export type Scope = { region: string; service: string }

/** Region set and service of ingestion-api.md 5.2 and 5.3. */
const ingestionScope: Scope = { region: '*', service: 'execute-api' }

/** A signer for one set of credentials. It keeps the derived key, so make one per set, not per request. */
export function createSigner(credentials: Credentials, scope: Scope = ingestionScope): Sign {
  const signer = new SignatureV4a({ ...scope, credentials, sha256: hashOfSigner() })
  let key: KeyObject | undefined
  Object.defineProperty(signer, 'getSignature', {
    value: (derivedKey: Uint8Array, stringToSign: string): Promise<string> => {
      key ??= privateKeyOf(derivedKey)
      return Promise.resolve(signNatively('sha256', Buffer.from(stringToSign), key).toString('hex'))
    },
  })
  return async (request, signingAt) => {
    const { method, protocol, hostname, path, body } = request
    const headers: Record<string, string> = {
      ...request.headers,
      host: request.host,
      'x-amz-content-sha256': hash('sha256', body, 'hex'),
    }
    const toSign: HttpRequest = { method, protocol, hostname, path, query: {}, headers, body }
    // The package declares no type for the result. It is the request with headers added.
    const signed = (await signer.sign(toSign, { signingDate: new Date(signingAt) })) as HttpRequest
    return signed.headers
  }
}

/** The scalar that the package derived from the secret (AWS4A derivation), as a P-256 key of node:crypto. */
function privateKeyOf(scalar: Uint8Array): KeyObject {
  const curve = createECDH('prime256v1')
  curve.setPrivateKey(scalar)
  // Uncompressed point: 04, x, y.
  const point = curve.getPublicKey()
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    d: Buffer.from(scalar).toString('base64url'),
    x: point.toString('base64url', 1, 33),
    y: point.toString('base64url', 33, 65),
  }
  return createPrivateKey({ key: jwk, format: 'jwk' })
}

/**
 * The hash class that the package requires: SHA-256, or HMAC-SHA-256 with a secret. A signer has one secret,
 * so the last HMAC is kept, with its input.
 */
function hashOfSigner() {
  let last: { of: Buffer; secret: Buffer; digest: Uint8Array } | null = null

  return class NativeSha256 {
    readonly #secret: Buffer | null
    #bytes: Buffer = Buffer.alloc(0)

    constructor(secret?: SourceData) {
      this.#secret = secret === undefined ? null : Buffer.from(bytesOf(secret))
    }

    update(part: SourceData): void {
      this.#bytes = Buffer.concat([this.#bytes, bytesOf(part)])
    }

    digest(): Promise<Uint8Array> {
      const of = this.#bytes
      const secret = this.#secret
      if (secret === null) return Promise.resolve(hash('sha256', of, 'buffer'))
      if (last === null || !last.of.equals(of) || !last.secret.equals(secret))
        last = { of, secret, digest: createHmac('sha256', secret).update(of).digest() }
      return Promise.resolve(last.digest)
    }
  }
}

function bytesOf(source: SourceData): Uint8Array {
  if (typeof source === 'string') return Buffer.from(source)
  if (source instanceof ArrayBuffer) return new Uint8Array(source)
  return new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
}
