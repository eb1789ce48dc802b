// certificate-check.ts: whether a client certificate that was accepted would be accepted by other authorities
// and revocation lists, too. TLS asks only at the handshake; this is for connections that are open.
//
// It judges less than OpenSSL: a chain of signatures to one of the authorities, and serial numbers of
// revocation lists (RFC 5280, 5.1). Dates are not looked at, as in a connection that stays open. Where two
// authorities give the same serial number, a connection may be closed that is valid: its client connects
// again, and TLS judges it whole.

import { X509Certificate } from 'node:crypto'

export type CertificateCheck = (certificate: X509Certificate) => boolean

const chainMax = 8

/** PEM texts that `tlsProblem` has accepted. */
export function createCertificateCheck({
  clientCa,
  clientCrl,
}: {
  clientCa: string | null
  clientCrl: string | null
}): CertificateCheck {
  const authorities = blocksOf(clientCa, 'CERTIFICATE').map((block) => new X509Certificate(block))
  const revoked = new Set(blocksOf(clientCrl, 'X509 CRL').flatMap((block) => [...serialsOf(derOf(block))]))
  return (certificate) => {
    let next: X509Certificate | undefined = certificate
    for (let depth = 0; next !== undefined && depth < chainMax; depth += 1) {
      const one: X509Certificate = next
      if (revoked.has(withoutZeros(one.serialNumber))) return false
      if (authorities.some((authority) => one.checkIssued(authority) && one.verify(authority.publicKey)))
        return true
      next = one.issuerCertificate
    }
    return clientCa === null
  }
}

function blocksOf(text: string | null, kind: string): string[] {
  const block = new RegExp(`-----BEGIN (?:TRUSTED )?${kind}-----[^-]*-----END (?:TRUSTED )?${kind}-----`, 'g')
  return text?.match(block) ?? []
}

function derOf(block: string): Buffer {
  return Buffer.from(block.replace(/-----[^-]*-----/g, ''), 'base64')
}

function withoutZeros(hex: string): string {
  return hex.toUpperCase().replace(/^(00)+(?=..)/, '')
}

// ---- revocation lists: CertificateList of RFC 5280, 5.1, as DER

const tag = { integer: 0x02, utcTime: 0x17, generalizedTime: 0x18, sequence: 0x30 }

type Element = { tag: number; content: Buffer }

/** Serial numbers in hexadecimal digits, as Node writes those of certificates. */
function* serialsOf(der: Buffer): Generator<string> {
  const [list] = elementsOf(der)
  const [signed] = list === undefined ? [] : elementsOf(list.content)
  if (signed === undefined) return
  const fields = [...elementsOf(signed.content)]
  // Behind the dates; the fields before are sequences, too.
  const lastDate = fields.findLastIndex(
    (field) => field.tag === tag.utcTime || field.tag === tag.generalizedTime,
  )
  const entries = fields[lastDate + 1]
  if (lastDate === -1 || entries?.tag !== tag.sequence) return
  for (const entry of elementsOf(entries.content)) {
    const [serial] = elementsOf(entry.content)
    if (serial?.tag === tag.integer) yield withoutZeros(serial.content.toString('hex'))
  }
}

/** Stops where the bytes do not go on as DER. */
function* elementsOf(der: Buffer): Generator<Element> {
  let at = 0
  while (at + 2 <= der.length) {
    const first = der[at + 1]!
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f
    if (lengthBytes > 4 || at + 2 + lengthBytes > der.length) return
    const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes)
    const start = at + 2 + lengthBytes
    if (start + length > der.length) return
    yield { tag: der[at]!, content: der.subarray(start, start + length) }
    at = start + length
  }
}
