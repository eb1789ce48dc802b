// Import of exported and salvaged lines.

import { describe, expect, test } from 'vitest'
import { collect } from '../support/open-spool.ts'
import {
  openDeadLettersWorld,
  refusedMessage,
  refusedPayload,
  telemetryOf,
} from '../support/dead-letters-world.ts'
import { payloadNamed } from '../support/spool-world.ts'

const never = new AbortController().signal

describe('export and import', () => {
  test('what was exported and purged can be imported and is sent', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedMessage('one'))
    const text = (await collect(world.operations.export({}))).join('')
    await world.operations.purge({}, { dryRun: false }, never)
    const report = await world.operations.importLines(text, { dryRun: false }, never)
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
    expect(await world.operations.importLines(text, { dryRun: false }, never)).toMatchObject({
      payloads: 0,
      duplicates: 3,
      remap: null,
    })
    const [line = ''] = text.split('\n')
    const other = line.replaceAll(payloadNamed('a').payloadId, payloadNamed('new').payloadId)
    expect(await world.operations.importLines(`${other}\n${other}`, { dryRun: false }, never)).toMatchObject({
      payloads: 1,
      duplicates: 1,
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
    await expect(
      world.operations.importLines(wrong.join('\n'), { dryRun: false }, never),
    ).rejects.toMatchObject(fault)
    expect(world.payloads()).toBe(0)
  })

  test('lines marked suspect are left out', async () => {
    const world = await openDeadLettersWorld()
    const line = { kind: 'payload', provider: 'default', suspect: 'a checksum', payload: telemetryOf('a') }
    const report = await world.operations.importLines(JSON.stringify(line), { dryRun: false }, never)
    expect([report.suspect, report.payloads, world.payloads()]).toEqual([1, 0, 0])
  })

  test('a payload without a provider goes to the only provider of the config', async () => {
    const line = JSON.stringify({ kind: 'payload', provider: null, payload: telemetryOf('a') })
    const one = await openDeadLettersWorld()
    expect(await one.operations.importLines(line, { dryRun: false }, never)).toMatchObject({ payloads: 1 })
    const two = await openDeadLettersWorld({ providers: ['x', 'y'] })
    await expect(two.operations.importLines(line, { dryRun: false }, never)).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
    })
  })

  test('a dry run imports nothing', async () => {
    const world = await openDeadLettersWorld()
    const line = JSON.stringify({ kind: 'payload', provider: 'default', payload: telemetryOf('a') })
    expect(await world.operations.importLines(line, { dryRun: true }, never)).toMatchObject({
      payloads: 1,
      dryRun: true,
    })
    expect(world.payloads()).toBe(0)
  })
})
