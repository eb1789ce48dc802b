import {
  array,
  assert,
  boolean,
  constantFrom,
  double,
  infiniteStream,
  integer,
  jsonValue,
  nat,
  oneof,
  property,
  record,
  string,
  stringMatching,
  tuple,
  uuid,
} from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { entriesOfBody } from '../../../src/delivery/transport/body-entries.ts'
import { decodeEntries } from '../../../src/receipts/receipt-entries.ts'
import { openTrucks, truckMessages } from '../../bench/trucks.ts'
import { startAt, uuidNamed } from '../../support/ledger-world.ts'

/** A body as the spool writes it, and where each payload starts in it. */
function bodyOf(payloads: readonly string[]): { body: Buffer; starts: Uint32Array } {
  const starts = new Uint32Array(payloads.length)
  let text = `{"batchId":"${uuidNamed('b')}","timestamp":1,"data":[`
  for (const [index, payload] of payloads.entries()) {
    starts[index] = Buffer.byteLength(text)
    text += index < payloads.length - 1 ? `${payload},` : payload
  }
  return { body: Buffer.from(`${text}]}`), starts }
}

type Payload = {
  payloadId: string
  signalTimestamp?: number
  deviceIdentifier?: { id?: string }
  assetIdentifier?: { id?: string }
}

const expected = (text: string) => {
  const payload = JSON.parse(text) as Payload
  return {
    payloadId: payload.payloadId,
    deviceTime: payload.signalTimestamp ?? null,
    device: payload.deviceIdentifier?.id ?? payload.assetIdentifier?.id ?? null,
  }
}

function entriesIn(payloads: readonly string[]) {
  const { body, starts } = bodyOf(payloads)
  const entries = decodeEntries(entriesOfBody(body, starts))
  return payloads.map((_, index) => entries?.at(index))
}

const name = oneof(
  { weight: 3, arbitrary: stringMatching(/^[a-z0-9 -]{1,20}$/) },
  { weight: 1, arbitrary: string({ unit: 'binary', minLength: 1, maxLength: 256 }) },
)
const identifier = record({ type: name, id: name, model: name, operator: name }, { requiredKeys: [] })
const member = record(
  {
    carrier: name,
    signalTimestamp: integer({ min: -1000, max: startAt * 2 }),
    assetIdentifier: identifier,
    deviceIdentifier: identifier,
    gps: record({ latitude: double({ noNaN: true, noDefaultInfinity: true }), inMotion: boolean() }),
    signals: array(record({ id: uuid(), type: name, value: name })),
    further: jsonValue({ maxDepth: 3 }),
  },
  { requiredKeys: [] },
)
/** Members in any order after the payloadId, which always comes first. */
const payloadText = tuple(uuid(), member, infiniteStream(nat(1000))).map(([payloadId, members, order]) => {
  const shuffled = Object.entries(members).sort(() => ((order.next().value ?? 0) % 2 === 0 ? -1 : 1))
  return JSON.stringify({ payloadId, ...Object.fromEntries(shuffled) })
})

/** The first members as the mapper orders them, with values that it writes and others. */
const escaped = oneof(
  { weight: 4, arbitrary: name },
  { weight: 1, arbitrary: constantFrom('', 'a"b', 'a\\b') },
)
const idFirst = record(
  { id: escaped, type: escaped, operator: oneof({ weight: 9, arbitrary: escaped }, constantFrom(1, null)) },
  { requiredKeys: [] },
)
const mappedText = record(
  {
    payloadId: uuid(),
    carrier: escaped,
    signalTimestamp: oneof(
      { weight: 9, arbitrary: integer({ min: -9, max: startAt * 2 }) },
      constantFrom(-1, 0, 1.5, 1e21, 123456789012345, 1234567890123456),
    ),
    assetIdentifier: idFirst,
    deviceIdentifier: idFirst,
    gps: constantFrom({ inMotion: true }, { deviceIdentifier: { id: 'of the position' } }),
  },
  { requiredKeys: ['payloadId'] },
).map((payload) => JSON.stringify(payload))

describe('the entries of a body', () => {
  test('are those of its JSON, in any order and with any names', () => {
    assert(
      property(array(payloadText, { minLength: 1, maxLength: 5 }), (payloads) => {
        expect(entriesIn(payloads)).toEqual(payloads.map(expected))
      }),
    )
  })

  test('are those of its JSON in the order of the mapper, with any values', () => {
    assert(
      property(array(mappedText, { minLength: 1, maxLength: 5 }), (payloads) => {
        expect(entriesIn(payloads)).toEqual(payloads.map(expected))
      }),
    )
  })

  test('are found without parsing in what the mapper writes', async () => {
    const mapper = await openTrucks()
    const payloads = truckMessages(100).flatMap((message) => {
      const result = mapper.map(message)
      return result.kind === 'payloads' ? result.payloads.map(({ json }) => json) : []
    })
    expect(payloads).toHaveLength(100)
    const { body, starts } = bodyOf(payloads)
    const parse = vi.spyOn(JSON, 'parse')
    entriesOfBody(body, starts)
    expect(parse).not.toHaveBeenCalled()
    parse.mockRestore()
  })

  test('a single payload is the whole body', () => {
    const text = JSON.stringify({
      payloadId: uuidNamed('1'),
      signalTimestamp: startAt,
      signals: [{ id: 'x' }],
      further: [{ deep: ['a'] }],
    })
    const entries = decodeEntries(entriesOfBody(Buffer.from(text), Uint32Array.of(0)))
    expect(entries?.at(0)).toEqual(expected(text))
  })
})
