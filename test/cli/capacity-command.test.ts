import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'

const capacity = (...words: readonly string[]) => runCli(['capacity', ...words])

async function planOf(...words: readonly string[]) {
  const { stdout } = await capacity('--json', ...words)
  return JSON.parse(stdout) as {
    demand: Record<string, unknown>
    figures: Record<string, number>
    messages: { perS: number; inOutage: number }
    engine: { coresIn: number; keptMessages: number }
    limits: { what: string; share: number }[]
  }
}

describe('capacity', () => {
  test('prints the plan of a million vehicles, with the limits that it passes', async () => {
    const { status, stdout, stderr } = await capacity()
    expect([status, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/messages\/s +33,333 +1,000,000 vehicles, one each 30 s/)
    expect(stdout).toMatch(/backlog +960,000,000 +after an outage of 8 h/)
    expect(stdout).toMatch(/TOO LITTLE +\d+ % +messages a second that the engine takes in/)
  })

  test('ends with status 0 where everything is enough', async () => {
    const { status, stdout } = await capacity('--vehicles', '100000', '--every', '60s')
    expect(status).toBe(0)
    expect(stdout).not.toContain('TOO LITTLE')
    expect(stdout).toMatch(/enough +\d+ %/)
  })

  test('takes each option into the plan', async () => {
    const words =
      '--vehicles 600 --every 2s --message-bytes 100 --peak 2.5 --outage 10m --drain 20m --engine nats'
    const more = '--flush interval --custody delivered --gateways 3 --partitions 6 --nodes 5 --node-cores 16'
    const machines = '--node-memory 64GiB --node-disk 2TB --gateway-cores 8 --spool 50GiB'
    const links = '--service-rate 900 --upload 20 --set in_cpu_us=200'
    const { demand, figures, messages, engine } = await planOf(
      ...`${words} ${more} ${machines} ${links}`.split(' '),
    )
    expect(demand).toEqual({
      vehicles: 600,
      everyMs: 2000,
      messageBytes: 100,
      peak: 2.5,
      outageMs: 600_000,
      drainMs: 1_200_000,
      engine: 'nats',
      flushesEach: false,
      custody: 'delivered',
      gateways: 3,
      partitions: 6,
      machines: {
        nodes: 5,
        nodeCores: 16,
        nodeMemoryBytes: 64 * 1024 ** 3,
        nodeDiskBytes: 2e12,
        gatewayCores: 8,
        spoolBytes: 50 * 1024 ** 3,
      },
      servicePerS: 900,
      uploadBitsPerS: 20e6,
    })
    expect(figures['in_cpu_us']).toBe(200)
    expect(messages).toMatchObject({ perS: 300, inOutage: 180_000 })
    expect(engine).toMatchObject({ coresIn: 0.15, keptMessages: 180_000 })
  })

  test('NATS that flushes each message bears far fewer vehicles', async () => {
    const share = async (flush: string) => {
      const { limits } = await planOf('--engine', 'nats', '--vehicles', '100000', '--flush', flush)
      return limits.find(({ what }) => what.includes('takes in'))!.share
    }
    expect(await share('always')).toBeGreaterThan(10 * (await share('interval')))
  })

  test('lists the figures with their sources; a replaced one says so', async () => {
    const { status, stdout } = await capacity('--figures', '--engine', 'nats', '--set', 'user_bytes=1')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^in_cpu_us +95 +us +processor time of the engine/m)
    expect(stdout).toMatch(/^user_bytes +1 +bytes .* --set$/m)
  })
})
