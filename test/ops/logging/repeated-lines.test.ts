import { expect, test } from 'vitest'
import type { EventName, EventOf } from '../../../src/domain/event.ts'
import { createLog } from '../../../src/ops/logging/logging.ts'
import { eventSamples } from '../../support/event-samples.ts'
import { handClock, keptOutput, startedOps } from '../../support/ops-world.ts'
import { stepCases } from '../../support/step-cases.ts'

type World = ReturnType<typeof world>

const refusal = (
  clientId: string,
  address: string,
  reason = 'bad_credentials',
): EventOf<'client_refused'> => ({
  ...eventSamples.client_refused,
  reason,
  clientId,
  address,
})

function world(given: { level?: 'info' | 'debug' } | undefined) {
  const clock = handClock()
  const output = keptOutput()
  const log = createLog({ clock, stdout: output.stream, env: {} }, { level: given?.level ?? 'info' })
  return { clock, output, log }
}

function writeRefusals(
  { log }: Pick<World, 'log'>,
  count: number,
  of: (n: number) => [string, string],
): void {
  for (let n = 0; n < count; n += 1) log.write(refusal(...of(n)))
}

stepCases(import.meta.filename, world, {
  /** The sample of that name, with other fields, so often. */
  write: ({ log }: World, [name, fields = {}, times = 1]: [EventName, object?, number?]) => {
    for (let n = 0; n < times; n += 1) log.write({ ...eventSamples[name], ...fields })
  },
  refuse: (one: World, [clientIds, address, times = 1]: [string[], string, number?]) => {
    for (let n = 0; n < times; n += 1)
      for (const clientId of clientIds) one.log.write(refusal(clientId, address))
  },
  /** Of clients with invented ids, from one address or from as many. */
  scan: (one: World, [count, address]: [number, string]) =>
    writeRefusals(one, count, (n) => [`x${n}`, address.replace('N.M', `${n >> 8}.${n & 255}`)]),
  pass: ({ clock }: World, ms: number) => clock.move(ms),
  close: ({ log }: World) => log.close(),
  lines: ({ output }: World, expected: object[]) => expect(output.lines()).toMatchObject(expected),
  last: ({ output }: World, expected: object) => expect(output.lines().at(-1)).toMatchObject(expected),
  summary: ({ output }: World, expected: object) =>
    expect(output.lines().find(({ summary }) => summary === true)).toMatchObject(expected),
  count: ({ output }: World, count: number) => expect(output.lines()).toHaveLength(count),
  countAtMost: ({ output }: World, most: number) => expect(output.lines().length).toBeLessThanOrEqual(most),
  suppressed: ({ log }: World, count: number) => expect(log.linesSuppressed).toBe(count),
  /** What the lines stand for: each for itself and those that it says were not written. */
  accounted: ({ output }: World, count: number) =>
    expect(output.lines().reduce((sum, { suppressed }) => sum + 1 + Number(suppressed ?? 0), 0)).toBe(count),
})

test('lines that were not written are a metric', async () => {
  await using of = await startedOps()
  for (let n = 0; n < 50; n += 1) of.ops.emit(refusal('truck-7', '10.0.0.7'))
  of.clock.move(60_000)
  expect(await of.metrics()).toContain('gateway_log_lines_suppressed_total 48\n')
})
