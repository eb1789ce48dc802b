// The ways of not working that are only seen after a while, with the clock of the gateway and of the service some
// times as fast as that of the machine. See test/app/ways-of-not-working.test.ts.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { roundTrip, messageOf, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'
import { publish, severityOf, type Way } from '../support/ways-world.ts'

const factor = 60

const single = 'batch: { max_payloads: 1, linger: 20ms }'
const always = '{ listen: "127.0.0.1:0", silence: { after: 30s, quiet_hours: "", quiet_days: [] } }'

const ways: Way[] = [
  {
    name: 'the service takes long for each answer',
    options: {
      sandbox: { faults: { latency: 16_000 } },
      // Seconds of the machine: one that has other work must not turn a late answer into none.
      sections: {
        delivery: `${single}, timeout: 5m, max_in_flight: 2`,
        // The device sends for a moment only.
        ops: '{ listen: "127.0.0.1:0", silence: { after: 12h } }',
      },
    },
    act: (pipeline) => publish(pipeline, 20),
    code: 'SERVICE_SLOW',
    verdict: 'degraded',
    // With such a clock, messages seem to take long to map.
    sentence: /SERVICE_SLOW.*answers late|1 of \d problems/,
    cure: /the line.*support of the service/,
  },
  {
    name: 'the service accepts requests and answers none for minutes',
    options: { sandbox: { faults: { hang: 1 } }, sections: { delivery: `${single}, timeout: 5m` } },
    code: 'SERVICE_HANGING',
    verdict: 'not_delivering',
    sentence: /^The service does not answer: 1 request .* Payloads wait for/,
    cure: /support of the service/,
  },
  {
    name: 'more comes in than is delivered',
    options: { sections: { delivery: `${single}, limits: { payloads_per_second: 1 }` } },
    act: flood,
    code: 'BACKLOG_GROWS',
    verdict: 'degraded',
    sentence: /BACKLOG_GROWS.* The backlog grows: \d+ payloads wait, the oldest since|1 of \d problems/,
    cure: /delivery\.limits/,
  },
  {
    name: 'no device sends any more',
    options: { sections: { ops: always } },
    code: 'DEVICES_SILENT',
    verdict: 'not_receiving',
    sentence: /^No device has sent anything since/,
    cure: /network of the depot/,
  },
  {
    name: 'no device has ever sent',
    options: { sections: { ops: always } },
    act: () => Promise.resolve(),
    code: 'DEVICES_SILENT',
    verdict: 'not_receiving',
    sentence: /^No device has sent anything yet/,
    cure: /listeners/,
  },
  {
    name: 'devices send to topics that no source has',
    act: (pipeline) => send(pipeline, { topic: 'telemetry/v2/truck-1', payload: messageOf }),
    code: 'NOTHING_MAPPED',
    verdict: 'degraded',
    // Such messages are dead letters, which count more.
    sentence: /^DEAD_LETTERS \(1 of/,
    cure: /tap/,
  },
  {
    name: 'the time of a gateway without a time service and without an answer is not known',
    options: { baseUrl: 'http://127.0.0.1:9' },
    code: 'CLOCK_UNKNOWN',
    verdict: 'not_delivering',
    sentence: /Cannot deliver/,
    cure: /timedatectl/,
  },
]

describe('a gateway that does not work is seen, with time, where', () => {
  test.each(ways)(
    '$name',
    async ({ options, act = (one) => publish(one), code, verdict, sentence, cure }) => {
      const pipeline = await startPipeline({ clock: createFastClock(factor), ...options })
      await act(pipeline)
      expect(await severityOf(pipeline, { code, verdict, sentence, cure })).not.toBe('info')
    },
  )
})

describe('a gateway that works in part is seen where', () => {
  test('every second request fails', async () => {
    const faults = Array.from({ length: 60 }, () => [{ count: 1, always: 500 }, { count: 1 }]).flat()
    const pipeline = await startPipeline({
      sandbox: { faults },
      sections: { delivery: `${single}, max_in_flight: 1, backoff: { min: 10ms, max: 20ms }` },
    })
    await publish(pipeline, 30)
    const seen = { verdict: 'degraded' as const, sentence: /REQUESTS_FAILING/, cure: /batches list/ }
    expect(await severityOf(pipeline, { code: 'REQUESTS_FAILING', ...seen })).toBe('warning')
  })

  test('the service refuses the payloads of every second device', async () => {
    const pipeline = await startPipeline({
      sandbox: { faults: { fail: [{ device: 'truck-2' }] } },
      sections: { delivery: 'batch: { max_payloads: 10, linger: 1s }' },
    })
    const devices = [await pipeline.device('truck-1'), await pipeline.device('truck-2')]
    // In turn: batches of the second device alone would be NOTHING_ACCEPTED.
    for (let n = 1; n <= 30; n += 1) {
      for (const [index, device] of devices.entries())
        device.publish({ topic: topicOf(`truck-${index + 1}`), payload: messageOf(n), messageId: n })
      await pipeline.until(() => devices.every(({ acks }) => acks.length === n))
    }
    const seen = {
      verdict: 'degraded' as const,
      sentence: /^PAYLOADS_FAILING/,
      cure: /ledger --outcome retried/,
    }
    expect(await severityOf(pipeline, { code: 'PAYLOADS_FAILING', ...seen })).toBe('warning')
  })

  test('one device of twenty is in the device table, and the others are quarantined', async () => {
    const folder = await newFolder()
    await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,A-1\n')
    const pipeline = await startPipeline({
      clock: createFastClock(factor),
      folder,
      config: (baseUrl) => quarantining(baseUrl),
    })
    const device = await pipeline.device('gateway-of-the-depot')
    for (let n = 1; n <= 100; n += 1)
      device.publish({ topic: topicOf(`truck-${1 + (n % 20)}`), payload: messageOf(n), messageId: n })
    await pipeline.until(() => device.acks.length === 100)
    const seen = {
      verdict: 'degraded' as const,
      sentence: /^DEVICES_NOT_MAPPED: .* 19 of 20 devices|1 of \d problems/,
      cure: /devices show/,
    }
    expect(await severityOf(pipeline, { code: 'DEVICES_NOT_MAPPED', ...seen })).toBe('warning')
  })

  test.each([
    {
      devices: 1,
      code: 'NOTHING_MAPPED',
      sentence: /nothing new comes: each of the last \d+ messages|1 of \d problems/,
      cure: /tap/,
    },
    {
      devices: 1,
      code: 'DEVICES_REPEATING',
      sentence: /^DEVICES_REPEATING|1 of \d problems|nothing new/,
      cure: /clock.*firmware/,
    },
    {
      devices: 2,
      code: 'DEVICES_REPEATING',
      sentence: /^DEVICES_REPEATING: .* 1 of 2 devices|1 of \d problems/,
      cure: /clock.*firmware/,
    },
  ] as const)(
    'a device with a frozen clock sends the same message for ever: $code of $devices',
    async ({ devices, code, sentence, cure }) => {
      const pipeline = await startPipeline({ clock: createFastClock(factor) })
      const stuck = await pipeline.device('truck-1')
      const other = await pipeline.device('truck-2')
      const repeatMessages = setInterval(() => {
        stuck.publish({ topic: topicOf('truck-1'), payload: messageOf(0), qos: 0 })
        if (devices > 1)
          other.publish({ topic: topicOf('truck-2'), payload: messageOf(nextNumber()), qos: 0 })
      }, 33)
      onTestFinished(() => clearInterval(repeatMessages))
      expect(await severityOf(pipeline, { code, verdict: 'degraded', sentence, cure })).toBe('warning')
      const { ops } = pipeline.gateway.addresses
      await pipeline.until(() => pipeline.status().devices.repeating === 1)
      const { stdout } = await runCli(['devices', '--url', ops, '--state', 'repeating'])
      expect(stdout).toMatch(
        /^truck-1 .* repeating .* It repeats its last message \(\d+ times\)\. The last new one/m,
      )
    },
  )

  test('the spool fills: a warning before it is full', async () => {
    const pipeline = await startPipeline({
      baseUrl: 'http://127.0.0.1:9',
      sections: { spool: '{ path: ./spool, max_bytes: 1MiB, min_free_bytes: 1MiB }' },
    })
    const codes = () => pipeline.status().conditions.map(({ code }) => code)
    await sendUntil(pipeline, () => codes().includes('SPOOL_FILLING'))
    expect(codes()).not.toContain('SPOOL_FULL')
    await sendUntil(pipeline, () => codes().includes('SPOOL_FULL'))
    const seen = {
      verdict: 'not_receiving' as const,
      sentence: /^The spool is full/,
      cure: /spool\.max_bytes/,
    }
    expect(await severityOf(pipeline, { code: 'SPOOL_FULL', ...seen })).toBe('critical')
  })

  test('the quarantine fills: a warning before it is full, and listed devices continue', async () => {
    const folder = await newFolder()
    await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,A-1\n')
    const pipeline = await startPipeline({
      folder,
      config: (baseUrl) => quarantining(baseUrl, 'quarantine_max_bytes: 1MiB, quarantine_on_full: hold, '),
    })
    const note = 'x'.repeat(8000)
    const codes = () => pipeline.status().conditions.map(({ code }) => code)
    const payload = (n: number) => messageOf(n, { note })
    await sendUntil(pipeline, () => codes().includes('STORE_FILLING'), {
      name: 'stranger',
      payload,
      burst: 5,
    })
    expect(codes()).not.toContain('QUARANTINE_FULL')
    await sendUntil(pipeline, () => codes().includes('QUARANTINE_FULL'), {
      name: 'stranger',
      payload,
      burst: 5,
    })
    const seen = { verdict: 'degraded' as const, sentence: /^QUARANTINE_FULL/, cure: /quarantine list/ }
    expect(await severityOf(pipeline, { code: 'QUARANTINE_FULL', ...seen })).toBe('critical')
    await publish(pipeline)
  })

  test('a batch is held because of the answers to it', async () => {
    const pipeline = await startPipeline({
      sandbox: {
        faults: [
          { count: 1, after_commit: { cut: 1 } },
          { count: 30, always: 409 },
        ],
      },
      sections: { delivery: `${single}, backoff: { min: 10ms, max: 100ms }` },
    })
    await publish(pipeline)
    const seen = { verdict: 'degraded' as const, sentence: /BATCHES_HELD/, cure: /batches list|on_repeat/ }
    expect(await severityOf(pipeline, { code: 'BATCHES_HELD', ...seen })).toBe('error')
  })
})

/** Messages at a rate that a minute of the gateway has dozens of, until the condition is seen. */
async function flood(pipeline: Pipeline): Promise<void> {
  await sendUntil(pipeline, () => pipeline.status().conditions.some(({ code }) => code === 'BACKLOG_GROWS'), {
    burst: 5,
    payload: (n) => messageOf(n, { ts: Date.now() + n }),
  })
}

async function send(
  pipeline: Pipeline,
  { topic, payload }: { topic: string; payload: (n: number) => string },
): Promise<void> {
  const device = await pipeline.device('truck-1')
  for (let n = 1; n <= 40; n += 1) device.publish({ topic, payload: payload(n), messageId: n })
  await pipeline.until(() => device.acks.length === 40)
}

async function sendUntil(
  pipeline: Pipeline,
  holds: () => boolean,
  { name = 'truck-2', payload = (n: number) => messageOf(n), burst = 50 } = {},
): Promise<void> {
  const device = await pipeline.device(name)
  for (let n = 1; !holds();) {
    for (const last = n + burst; n < last; n += 1)
      device.publish({ topic: topicOf(name), payload: payload(nextNumber()), messageId: 1 + (n % 60_000) })
    // A connection that is held answers no more.
    await Promise.race([roundTrip(device).catch(() => undefined), pipeline.until(holds)])
  }
}

let messages = 0

/** No two messages of a file are alike: a duplicate takes no room. */
function nextNumber(): number {
  messages += 1
  return messages
}

function quarantining(baseUrl: string, spool = ''): string {
  return configText({
    spool: `{ path: ./spool, ${spool}max_bytes: 1GiB, min_free_bytes: 1MiB }`,
    more: `devices: { file: devices.csv, unknown: quarantine }
log: { level: debug }`,
  })(baseUrl)
}
