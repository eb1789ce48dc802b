import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { compileKeys, openBox } from '../../../src/mapping/extract/secretbox.ts'
import { compileExtract, compileExtractor } from '../../../src/mapping/extract/extract.ts'
import { extractSchema } from '../../../src/mapping/extract/extract-config.ts'
import { Secret } from '../../../src/std/secret.ts'
import { configOf, truckSource } from '../../support/mapping-world.ts'

const keyOf = (secret: string) => {
  const key = new Uint8Array(32)
  key.set(Buffer.from(secret))
  return key
}

function boxOf(secret: string, text: string | Buffer): string {
  const nonce = Buffer.alloc(24, 5)
  const box = xsalsa20poly1305(keyOf(secret), nonce).encrypt(Buffer.from(text as string))
  return Buffer.concat([nonce, box]).toString('base64')
}

const ofTopic = { kind: 'topic', name: (captures: readonly string[]) => captures[0] ?? '' } as const
const keysFor = (keys: { shared?: string[]; devices?: string }, device: string) => {
  const { shared = [], devices } = keys
  const secrets = { shared: shared.map((key) => new Secret(key)) }
  const all = devices === undefined ? secrets : { ...secrets, devices: new Secret(devices) }
  return compileKeys(all, ofTopic)([device])
}

describe('a box', () => {
  // Made by libsodium 1.0.18 itself.
  test.each([
    [
      'Zürich 7',
      'AAECAwQFBgcICQoLDA0ODxAREhMUFRYX5apO1q0dwUato97bgr+42ZMRdCHVIPFHo1jUTMnrth7Xs+1OpMJdVLl3j6R7Aupb',
      { text: '{"_type":"location","lat":47.37}', json: { _type: 'location', lat: 47.37 } },
    ],
    [
      'x'.repeat(32),
      '////////////////////////////////y0auHXxQ3B0Gh9uA1GOi272gZY0vY45jv3bS',
      { text: 'no JSON ✓' },
    ],
  ])('of libsodium is opened with the key %s', (secret, box, opened) => {
    expect(openBox(box, keysFor({ shared: [secret] }, 'a'))).toEqual(opened)
    expect(openBox(box, keysFor({ shared: [`${secret.slice(0, -1)}y`] }, 'a'))).toEqual({
      fault: 'wrong key',
    })
  })

  test('with any changed bit is not opened', () => {
    const box = Buffer.from(boxOf('key', 'text'), 'base64')
    for (let bit = 0; bit < box.length * 8; bit += 1) {
      const changed = Buffer.from(box)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(openBox(changed.toString('base64'), [keyOf('key')])).toEqual({ fault: 'wrong key' })
    }
  })

  test.each([
    ['no base64', '!!!!', 'no box'],
    ['shorter than a nonce and a checksum', Buffer.alloc(39).toString('base64'), 'no box'],
    ['empty', '', 'no box'],
    ['of 64 KiB and a byte', Buffer.alloc(64 * 1024 + 1).toString('base64'), 'too large'],
    ['far too large', 'A'.repeat(4_000_000), 'too large'],
    ['of 64 KiB', Buffer.alloc(64 * 1024).toString('base64'), 'wrong key'],
    ['with bytes that are no text', boxOf('key', Buffer.from([0xff])), 'no text'],
  ])('that is %s has a fault', (_what, value, fault) => {
    expect(openBox(value, [keyOf('key')])).toEqual({ fault })
  })

  test('of any value never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.base64String({ maxLength: 200 }), fc.string(), fc.jsonValue()), (value) => {
        const opened = openBox(value, [keyOf('key'), keyOf('other')])
        expect(opened === undefined || 'fault' in opened).toBe(true)
      }),
    )
  })

  test('replaces what the message says about it', () => {
    const [entry] = extractSchema.parse([{ from: 'data', as: 'secretbox', into: 'opened', when: 'secret' }])
    const extractor = compileExtractor(entry!, [], () => [keyOf('key')])
    const read = (record: object) => compileExtract([extractor])(record, { captures: [] })
    const data = boxOf('key', 'text')
    expect(read({ data, secret: true, opened: { text: 'forged' } })).toMatchObject({
      opened: { text: 'text' },
    })
    expect(read({ data: '', secret: true, opened: { text: 'forged' } })).toMatchObject({
      opened: { fault: 'no box' },
    })
    expect(read({ data, secret: false })).toEqual({ data, secret: false })
  })
})

describe('keys', () => {
  test('that are shared are tried in order, and one of them is enough', () => {
    for (const keys of [['old', 'new'], ['new', 'old'], ['new']])
      expect(openBox(boxOf('new', 'text'), keysFor({ shared: keys }, 'a'))).toEqual({ text: 'text' })
    expect(openBox(boxOf('new', 'text'), keysFor({}, 'a'))).toEqual({ fault: 'no key' })
  })

  test('of a device are used for it alone, and the shared ones for the others', () => {
    const devices = 'device,key\n# Anna\nanna/a,one\nanna/a,"two, three"\n'
    const keys = { shared: ['shared'], devices }
    const opens = (secret: string, device: string) => {
      const opened = openBox(boxOf(secret, 'text'), keysFor(keys, device))
      return opened !== undefined && 'text' in opened
    }
    for (const secret of ['one', 'two, three']) expect(opens(secret, 'anna/a')).toBe(true)
    expect(opens('shared', 'anna/a')).toBe(false)
    expect(opens('shared', 'bob/b')).toBe(true)
    expect(opens('one', 'bob/b')).toBe(false)
  })

  test.each([
    [{ shared: ['marked'.repeat(6)] }, 'must have a key of 1 to 32 bytes in shared[0], found 36 bytes'],
    [{ devices: 'device,key\na,' }, 'must have a key of 1 to 32 bytes in line 2 of devices, found 0 bytes'],
    [
      { devices: 'a,marked' },
      'must have devices whose first line is "device,key"; then follows a line for each key',
    ],
    [{ devices: 'device,key\na,b,marked' }, 'must have a device and a key in line 2 of devices'],
    [{ devices: 'device,key\n,marked' }, 'must have a device and a key in line 2 of devices'],
    [
      { devices: 'device,key\na,"marked' },
      'has a malformed line 2 in devices: it has a quote that is never closed',
    ],
    [{ devices: `device,key${'\na,marked'.repeat(9)}` }, 'has more than 8 keys of the device "a" at line 10'],
  ])('that cannot be used are refused without being shown: %#', (keys, message) => {
    const refused = (): unknown => keysFor(keys, 'a')
    expect(refused).toThrow(message)
    expect(refused).not.toThrow('marked')
  })

  const problemsOf = (rest: Record<string, unknown>) =>
    compileSources(configOf([truckSource({}, rest)])).problems.map(
      ({ path, message }) => `${path.join('.')} ${message}`,
    )
  const extract = [{ from: 'data', as: 'secretbox', into: 'opened' }]

  test('without a box, and for a device that only the message names, are a problem', () => {
    expect(problemsOf({ extract, keys: { devices: 'device,key\na,b' } })).toEqual([])
    expect(problemsOf({ keys: { shared: ['a'] } })).toEqual([
      'sources.0.keys opens nothing: the source has no entry of `extract` with `as: secretbox`.',
    ])
    expect(problemsOf({ extract, device: { path: 'imei' }, keys: { devices: 'device,key\na,b' } })).toEqual([
      'sources.0.keys has devices, which need a device that the topic names: the key must be known before the ' +
        'message is opened.',
    ])
    expect(problemsOf({ extract, device: { path: 'imei' }, keys: { shared: ['a'] } })).toEqual([])
  })
})
