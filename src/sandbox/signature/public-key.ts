// public-key.ts: derives the public key of a registered secret. SigV4a signs with an ECDSA key on P-256 that
// both sides derive from the secret: NIST SP 800-108 in counter mode with HMAC-SHA256.
//
//   key     "AWS4A" and the secret
//   input   1 (32 bit) | "AWS4-ECDSA-P256-SHA256" | 0 | access key id | tries (8 bit) | 256 (32 bit)
//
// A candidate above n - 2 is discarded and `tries` increased, so that the private key, candidate + 1, is in
// [1, n - 1].

import { createECDH, createHmac, createPublicKey, type KeyObject } from 'node:crypto'

export const algorithm = 'AWS4-ECDSA-P256-SHA256'

/** The order n of the group of P-256, minus 2. */
const candidateMax = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n - 2n

export function derivePublicKey(accessKeyId: string, secretAccessKey: string): KeyObject {
  for (let tries = 1; tries <= 254; tries += 1) {
    const input = Buffer.concat([
      Buffer.of(0, 0, 0, 1),
      Buffer.from(algorithm),
      Buffer.of(0),
      Buffer.from(accessKeyId),
      Buffer.of(tries),
      Buffer.of(0, 0, 1, 0),
    ])
    const candidate = BigInt(
      `0x${createHmac('sha256', `AWS4A${secretAccessKey}`).update(input).digest('hex')}`,
    )
    if (candidate <= candidateMax) return publicKeyOf(candidate + 1n)
  }
  // Each try fails with a probability of 1 in 2^32.
  throw new Error('assertion failed: no key could be derived')
}

function publicKeyOf(privateKey: bigint): KeyObject {
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey(privateKey.toString(16).padStart(64, '0'), 'hex')
  const point = ecdh.getPublicKey()
  return createPublicKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33, 65).toString('base64url'),
    },
  })
}
