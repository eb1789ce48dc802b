// Import of exported and salvaged lines.

import { describe, expect, test } from 'vitest'
import { collect } from '../support/open-spool.ts'
import type { DeliveredIds } from '../../src/dead-letters/dead-letters.ts'
import {
  openDeadLettersWorld,
  refusedMessage,
  refusedPayload,
  telemetryOf,
  type DeadLettersWorld,
} from '../support/dead-letters-world.ts'
import { exchangeOf, keptNamed, payloadNamed } from '../support/spool-world.ts'

const never = new AbortController().signal

/** Imports lines, and not as a dry run. */
function take(world: DeadLettersWorld, text: string, more: { token?: string; withoutLedger?: boolean } = {}) {
  return world.operations.importLines(text, { dryRun: false, ...more }, never)
}

const lineOf = (device: string, more: Record<string, unknown> = {}) =>
  JSON.stringify({ kind: 'payload', provider: 'default', payload: telemetryOf(device, more) })
const incomplete = { code: 'DEAD_LETTER_INVALID' }

describe('export and import', () => {
  test('what was exported and purged can be imported and is sent', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedMessage('one'))
    const text = (await collect(world.operations.export({}))).join('')
    await world.operations.purge({}, { dryRun: false }, never)
    const report = await take(world, text)
    expect(report).toMatchObject({ payloads: 1, duplicates: 0, suspect: 0, remap: { deadLetters: 1 } })
    expect(await world.sent()).toEqual([telemetryOf('a')])
    expect(world.remapped).toEqual([['one']])
    expect(world.eventsOf('dead_letters_imported')).toMatchObject([
      { payloads: 1, messages: 1, duplicates: 0 },
    ])
  })

  test('what is in the spool already is a duplicate, and so is the same line twice', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedPayload('b'), refusedMessage('one'))
    const text = (await collect(world.operations.export({}))).join('')
    await world.operations.requeue({ device: 'a' }, { dryRun: false }, never)
    expect(await take(world, text)).toMatchObject({
      payloads: 0,
      duplicates: 3,
      remap: null,
    })
    const [line = ''] = text.split('\n')
    const other = line.replaceAll(payloadNamed('a').payloadId, payloadNamed('new').payloadId)
    expect(await take(world, `${other}\n${other}`)).toMatchObject({
      payloads: 1,
      duplicates: 1,
    })
  })

  test('two messages that differ in a property of MQTT 5 are two', async () => {
    const world = await openDeadLettersWorld()
    const { envelope } = refusedMessage('one')
    if (envelope === null) throw new Error('a refused message has its envelope')
    await world.add(refusedMessage('one', { envelope: { ...envelope, userProperties: { seq: '1' } } }))
    const [line = ''] = await collect(world.operations.export({}))
    const text = [line, line.replace('{"seq":"1"}', '{"seq":"2"}'), line.replace('{"seq":"1"}', '{}')].join(
      '',
    )
    expect(await take(world, text)).toMatchObject({
      duplicates: 1,
      remap: { deadLetters: 2 },
    })
  })

  test('two entries for other records of one message are two', async () => {
    const world = await openDeadLettersWorld()
    const { envelope } = refusedMessage('one')
    if (envelope === null) throw new Error('a refused message has its envelope')
    const kept = (index: number) => ({ ...envelope, records: [{ index, hash: '0123456789abcdef' }] })
    await world.add(refusedMessage('one', { envelope: kept(1) }))
    const [line = ''] = await collect(world.operations.export({}))
    const text = [line, line.replace('"index":1', '"index":2')].join('')
    expect(await take(world, text)).toMatchObject({
      duplicates: 1,
      remap: { deadLetters: 1 },
    })
    const wrong = line.replace('"index":1', '"index":"first"')
    await expect(take(world, wrong)).rejects.toMatchObject({
      why: expect.stringContaining('its envelope is incomplete') as string,
    })
  })

  test('an invalid line changes nothing, and all invalid lines are reported', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'))
    const [line = ''] = await collect(world.operations.export({}))
    await world.operations.purge({}, { dryRun: false }, never)
    const wrong = [line.trim(), 'no json', '{"kind":"other"}', line.trim().replace('"default"', '"gone"')]
    const fault = {
      code: 'DEAD_LETTER_INVALID',
      why: expect.stringMatching(/line 2: .*line 3: .*line 4: .*"gone"/) as string,
    }
    await expect(take(world, wrong.join('\n'))).rejects.toMatchObject(fault)
    expect(world.payloads()).toBe(0)
  })

  test('lines marked suspect are left out', async () => {
    const world = await openDeadLettersWorld()
    const line = { kind: 'payload', provider: 'default', suspect: 'a checksum', payload: telemetryOf('a') }
    const report = await take(world, JSON.stringify(line))
    expect([report.suspect, report.payloads, world.payloads()]).toEqual([1, 0, 0])
  })

  test('a payload without a provider goes to the only provider of the config', async () => {
    const line = JSON.stringify({ kind: 'payload', provider: null, payload: telemetryOf('a') })
    const one = await openDeadLettersWorld()
    expect(await take(one, line)).toMatchObject({ payloads: 1 })
    const two = await openDeadLettersWorld({ providers: ['x', 'y'] })
    await expect(take(two, line)).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
    })
  })

  test('a dry run imports nothing', async () => {
    const world = await openDeadLettersWorld()
    expect(await world.operations.importLines(lineOf('a'), { dryRun: true }, never)).toMatchObject({
      payloads: 1,
      dryRun: true,
    })
    expect(world.payloads()).toBe(0)
  })
})

describe('an import in parts', () => {
  const delivers =
    (...devices: string[]): DeliveredIds =>
    async (_times, visit) => {
      for (const device of devices) visit(payloadNamed(device).payloadId)
      return { kind: 'asked', since: 1000 }
    }

  async function planned(world: DeadLettersWorld, ...parts: string[]): Promise<string> {
    let token: string | undefined
    for (const part of parts) token = (await world.operations.planImport(part, token, never)).import
    await world.operations.checkImport(token ?? '', { withoutLedger: false }, never)
    return token ?? ''
  }

  test('reads the spool once for all of its parts', async () => {
    const world = await openDeadLettersWorld()
    const parts = ['a', 'b', 'c'].map((device) => lineOf(device))
    const token = await planned(world, ...parts)
    for (const part of parts) await take(world, part, { token })
    expect(world.walks()).toBe(1)
    expect(await world.sent()).toEqual(['a', 'b', 'c'].map((device) => telemetryOf(device)))
  })

  test('leaves out what the ledger has as delivered, and what the spool holds', async () => {
    const world = await openDeadLettersWorld({ delivered: delivers('a') })
    await world.add(refusedPayload('b'))
    const text = ['a', 'b', 'c'].map((device) => lineOf(device)).join('\n')
    expect(await take(world, text)).toMatchObject({
      payloads: 1,
      duplicates: 1,
      delivered: 1,
    })
    expect(await world.sent()).toEqual([telemetryOf('c')])
  })

  test('asks the ledger for the device times of its payloads', async () => {
    const asked: unknown[] = []
    const delivered: DeliveredIds = async (times) => {
      asked.push(times)
      return { kind: 'asked', since: null }
    }
    const world = await openDeadLettersWorld({ delivered })
    const lines = [10, 30, 20].map((signalTimestamp, n) => lineOf(`t-${n}`, { signalTimestamp }))
    await take(world, lines.join('\n'))
    expect(asked).toEqual([{ from: 10, to: 30 }])
  })

  test('is refused while the ledger cannot be asked, unless the operator accepts that', async () => {
    const delivered: DeliveredIds = async () => ({ kind: 'unavailable', why: 'It is off.' })
    const world = await openDeadLettersWorld({ delivered })
    await expect(take(world, lineOf('a'))).rejects.toMatchObject({
      code: 'LEDGER_UNUSABLE',
      why: 'It is off.',
    })
    expect(world.payloads()).toBe(0)
    expect(await take(world, lineOf('a'), { withoutLedger: true })).toMatchObject({ payloads: 1 })
  })

  test('ends when another import starts: the running one could miss what the other adds', async () => {
    const world = await openDeadLettersWorld()
    const first = await planned(world, lineOf('a'))
    const second = await planned(world, lineOf('a'))
    const ended = { code: 'IMPORT_ENDED', act: expect.stringContaining('same command again') as string }
    await expect(take(world, lineOf('a'), { token: first })).rejects.toMatchObject(ended)
    await take(world, lineOf('a'), { token: second })
    expect(world.payloads()).toBe(1)
  })

  test('is forgotten after ten minutes without a request', async () => {
    const world = await openDeadLettersWorld()
    const token = await planned(world, lineOf('a'))
    await world.clock.advance(600_001)
    await expect(take(world, lineOf('a'), { token })).rejects.toMatchObject({ code: 'IMPORT_ENDED' })
  })

  test('refuses lines that were not there at the first reading, or not compared with the spool', async () => {
    const world = await openDeadLettersWorld()
    const { import: unchecked } = await world.operations.planImport(lineOf('a'), undefined, never)
    await expect(take(world, lineOf('a'), { token: unchecked })).rejects.toMatchObject(incomplete)
    const token = await planned(world, lineOf('a'))
    await expect(take(world, lineOf('b'), { token })).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
      why: expect.stringContaining('not there') as string,
    })
    expect(world.payloads()).toBe(0)
  })

  test('leaves out a message that is on a shelf, or a dead letter under another id', async () => {
    const world = await openDeadLettersWorld()
    const { message } = keptNamed('kept')
    const refused = refusedMessage('one')
    await world.spool.exchange(exchangeOf({ keptMessages: [message], deadLetters: [refused] }))
    const lines = [message.envelope, refused.envelope, { ...message.envelope, arrivedAt: 2 }].map(
      (envelope) => JSON.stringify({ kind: 'message', shelf: null, provider: null, device: null, envelope }),
    )
    expect(await take(world, lines.join('\n'))).toMatchObject({
      duplicates: 2,
    })
    expect(world.remapped).toEqual([['kept']])
  })
})
