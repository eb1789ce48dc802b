// secretbox.ts: boxes of libsodium (crypto_secretbox: XSalsa20 and Poly1305), as OwnTracks encrypts its
// messages: base64 of a nonce of 24 bytes and the box. The key is the secret of the app, padded with zeros to
// 32 bytes.
//
//   keys: { shared: [...] }    for every device
//   keys: { devices: CSV }     `device,key`; a device with rows of its own is opened with these keys only, so
//                              that a phone that knows the shared key cannot write in its name
//
// Several keys of one device are tried in order, so that a phone may change its secret. The result is
// { text, json }, `json` where the text is JSON, or { fault }: a box that cannot be opened must not look like
// a message that has none.
//
// Bounded: a box has at most `boxBytesMax`, and at most `keysMax` keys are tried. A wrong key is found by the
// checksum of the box, before anything is decrypted.

import { isUtf8 } from 'node:buffer'
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js'
import { quote } from '../../std/quote.ts'
import type { Secret } from '../../std/secret.ts'
import { parseCsv } from '../devices/csv.ts'
import type { DeviceRule } from '../devices/device-rule.ts'
import { decodeJson } from '../encodings/lenient-json.ts'
import { bytesFromBase64 } from '../encodings/text-bytes.ts'
import { Malformed } from '../path/text-cursor.ts'

/** The keys for the messages of a topic; none where its device has none. */
export type KeysFor = (captures: readonly string[]) => readonly Uint8Array[]

type Opened = { text: string; json?: unknown } | { fault: string }

const nonceBytes = 24
const checksumBytes = 16
const keyBytes = 32

/** Of a device, and of those that all devices share. */
export const keysMax = 8

/** A message of a phone has some hundred bytes. */
const boxBytesMax = 64 * 1024

/** Undefined for a value that is no text. */
export function openBox(value: unknown, keys: readonly Uint8Array[]): Opened | undefined {
  if (typeof value !== 'string') return undefined
  if (keys.length === 0) return { fault: 'no key' }
  if (value.length > 2 * boxBytesMax) return { fault: 'too large' }
  const bytes = bytesFromBase64(value)
  if (bytes === undefined || bytes.length < nonceBytes + checksumBytes) return { fault: 'no box' }
  if (bytes.length > boxBytesMax) return { fault: 'too large' }
  const opened = openedBytes(bytes, keys)
  if (opened === null) return { fault: 'wrong key' }
  if (!isUtf8(opened)) return { fault: 'no text' }
  const json = decodeJson(opened)
  const text = opened.toString()
  return json.kind === 'value' && json.broken === undefined ? { text, json: json.value } : { text }
}

function openedBytes(bytes: Buffer, keys: readonly Uint8Array[]): Buffer | null {
  const nonce = bytes.subarray(0, nonceBytes)
  const box = bytes.subarray(nonceBytes)
  for (const key of keys) {
    try {
      return Buffer.from(xsalsa20poly1305(key, nonce).decrypt(box))
    } catch (error) {
      // The lengths are right, so only the checksum can be wrong: the next key may be the right one.
      if (!(error instanceof Error)) throw error
    }
  }
  return null
}

type Keys = { shared: readonly Secret[]; devices?: Secret | undefined }

/** Throws Malformed, which names no key. */
export function compileKeys({ shared, devices }: Keys, device: DeviceRule | undefined): KeysFor {
  const common = shared.map((secret, index) => keyOf(secret.reveal(), `shared[${index}]`))
  if (devices === undefined) return () => common
  const own = keysByDevice(devices.reveal())
  // Its rule has a problem, which is reported.
  if (device === undefined) return () => common
  if (device.kind !== 'topic')
    throw new Malformed(
      'has devices, which need a device that the topic names: the key must be known before the message is opened',
    )
  const { name } = device
  return (captures) => own.get(name(captures)) ?? common
}

function keysByDevice(text: string): ReadonlyMap<string, readonly Uint8Array[]> {
  const { rows, problems } = parseCsv(text)
  const [problem] = problems
  if (problem) throw new Malformed(`has a malformed line ${problem.line} in devices: it ${problem.message}`)
  const [header, ...body] = rows
  if (header?.fields.join(',') !== 'device,key')
    throw new Malformed(
      'must have devices whose first line is "device,key"; then follows a line for each key',
    )
  const keys = new Map<string, Uint8Array[]>()
  for (const { line, fields } of body) {
    const [device = '', key = ''] = fields
    const at = `line ${line} of devices`
    if (fields.length !== 2 || device === '')
      throw new Malformed(
        `must have a device and a key in ${at}, and nothing else. A key with a comma is quoted`,
      )
    const own = keys.get(device) ?? []
    own.push(keyOf(key, at))
    if (own.length > keysMax)
      throw new Malformed(`has more than ${keysMax} keys of the device ${quote(device, 64)} at ${at}`)
    keys.set(device, own)
  }
  return keys
}

/** The secret that a person writes into the app, padded as the app pads it. */
function keyOf(secret: string, at: string): Uint8Array {
  const bytes = Buffer.from(secret)
  if (bytes.length === 0 || bytes.length > keyBytes)
    throw new Malformed(`must have a key of 1 to ${keyBytes} bytes in ${at}, found ${bytes.length} bytes`)
  const key = new Uint8Array(keyBytes)
  key.set(bytes)
  return key
}
