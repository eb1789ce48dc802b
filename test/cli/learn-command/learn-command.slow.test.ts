import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runCli, type CliResult } from '../../support/cli-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { startSandbox } from '../../support/pipeline-world.ts'
import { startSpawnedDaemon } from '../../support/spawned-daemon.ts'
import { openMqttBroker, type MqttBroker } from '../../support/mqtt-broker.ts'

const position = (ts: number, more = '') =>
  `{"state":{"reported":{"ts":${ts},"latlng":"51.4,9.5","ang":93,"sat":6${more}}}}`

/** Runs `learn` until what `publish` does was heard, then stops it as a person would. */
async function learn(
  broker: MqttBroker,
  publish: () => Promise<void>,
  more: readonly string[] = [],
): Promise<CliResult> {
  const stop = new AbortController()
  const ran = runCli(['learn', '--broker', broker.url, '--for', '1h', ...more], { stop: stop.signal })
  await broker.subscribed()
  await publish()
  await broker.delivered()
  stop.abort('SIGINT')
  return ran
}

async function publishTrucks(broker: MqttBroker): Promise<void> {
  for (let index = 0; index < 6; index += 1) {
    const topic = `teltonika/86463606000000${index % 2}/data`
    await broker.publish(topic, position(1_767_085_201_000 + index * 1000, index < 2 ? '' : ',"sp":40'))
  }
}

describe('the bridge that learn proposes', () => {
  async function learned(broker: MqttBroker, publish: () => Promise<void>, more: readonly string[] = []) {
    const { stdout } = await learn(broker, publish, ['--json', ...more])
    const { yaml } = JSON.parse(stdout) as { yaml: string }
    const { ingest, sources } = parse(yaml) as {
      ingest: { bridges?: Record<string, unknown>[] }
      sources: { name: string; from: string[] }[]
    }
    return { yaml, bridge: ingest.bridges?.[0], sources }
  }
  const yard = (broker: MqttBroker) =>
    broker.publish('yard/box-17/pos', '{"lat":48.1,"lng":2.2,"time":"2026-01-28 15:00:00","spd":3}')

  test('has the address, the topics of the sources, a client id and a session', async () => {
    await using broker = await openMqttBroker()
    const { bridge, sources } = await learned(broker, async () => {
      await publishTrucks(broker)
      await yard(broker)
    })
    expect(bridge).toEqual({
      name: '127-0-0-1',
      url: broker.url,
      topics: ['teltonika/+/data', 'yard/+/pos'],
      client_id: expect.stringMatching(/^telemetry-gateway-[0-9a-f]{8}$/),
      protocol: '3.1.1',
      qos: 1,
      session: 'keep',
    })
    expect(sources.map(({ from }) => from)).toEqual([['127-0-0-1'], ['127-0-0-1']])
  })

  test('subscribes to those topics of a preset on which something was heard', async () => {
    await using broker = await openMqttBroker()
    const message = {
      ident: '864636060000001',
      timestamp: 1_767_085_201,
      'position.latitude': 51.3,
      'position.longitude': 9.4,
    }
    const { bridge } = await learned(broker, () =>
      broker.publish('flespi/message/gw/devices/4530001', JSON.stringify(message)),
    )
    expect(bridge?.['topics']).toEqual(['flespi/message/gw/devices/+'])
  })

  test('subscribes to no more than --topic', async () => {
    await using broker = await openMqttBroker()
    const truck = 'teltonika/864636060000001/data'
    const { bridge } = await learned(broker, () => broker.publish(truck, position(1_767_085_201_000)), [
      '--topic',
      truck,
    ])
    expect(bridge?.['topics']).toEqual([truck])
  })

  test('names where the password is, and never the password', async () => {
    await using broker = await openMqttBroker({ user: { name: 'guest', password: 'open sesame' } })
    const file = join(await newFolder(), 'password')
    await writeFile(file, 'open sesame\n')
    const byFile = await learned(broker, () => yard(broker), ['--username', 'guest', '--password-file', file])
    expect(byFile.bridge).toMatchObject({ username: 'guest', password: `\${file:${file}}` })
    const url = broker.url.replace('//', '//guest:open%20sesame@')
    const second = { ...broker, url, subscribed: () => broker.subscribed(3) }
    const byUrl = await learned(second, () => yard(broker))
    expect(byUrl.bridge).toMatchObject({
      url: broker.url,
      username: 'guest',
      password: '${env:BROKER_PASSWORD}',
    })
    expect(byFile.yaml + byUrl.yaml).not.toMatch(/sesame/)
  })

  test('is left out where the client id names the devices, which a bridge does not know', async () => {
    await using broker = await openMqttBroker()
    const { bridge, yaml, sources } = await learned(broker, () =>
      broker.publish('pos', '{"lat":48.1,"lng":2.2,"time":"2026-01-28 15:00:00","spd":3}'),
    )
    expect([bridge, sources[0]?.from]).toEqual([undefined, ['broker']])
    expect(yaml).toContain('# A bridge does not know the client id.')
  })

  test('works with `run` as it stands: a message at the broker reaches the service', async () => {
    await using broker = await openMqttBroker()
    const { sandbox, url } = await startSandbox()
    const folder = join(await newFolder(), 'learned')
    const { status, stdout } = await learn(broker, () => publishTrucks(broker), ['--to', folder])
    expect([status, stdout]).toEqual([0, expect.stringContaining('bridges:')])
    const config = join(folder, 'gateway.yaml')
    expect(await runCli(['check', '--config', config])).toMatchObject({ status: 0, stderr: '' })
    expect((await runCli(['check', '--config', config])).stdout).not.toContain('warning    The source')
    // The ports of the test.
    const text = (await readFile(config, 'utf8')).replace('http://127.0.0.1:8081', url)
    await writeFile(config, `${text}ops: { listen: "127.0.0.1:0" }\n`)
    await startSpawnedDaemon(config)
    await broker.subscribed(3)
    await broker.publish('teltonika/864636060000001/data', position(1_767_085_300_000))
    await eventually(() => sandbox.stats().payloadsAccepted === 1)
  })
})

describe('learn', () => {
  test('proposes a preset, and lists the values that will be missing', async () => {
    await using broker = await openMqttBroker()
    const { status, stdout, stderr } = await learn(broker, () => publishTrucks(broker))
    expect(status).toBe(0)
    expect(stderr).toBe('Listening to # for 1 h.\n')
    expect(stdout).toMatch(/^6 messages on 2 topics in \d+ m?s, ended by a signal\.\n/)
    expect(stdout).toContain('teltonika-json: preset teltonika-json')
    expect(stdout).toContain('6 of 6 messages tried map to 6 payloads of 2 devices')
    expect(stdout).toContain('- Speed missing in 2 of 6 payloads.')
    expect(stdout).toContain('- No model: odometer and engine hours are omitted.')
    expect(stdout).toContain('last message, on teltonika/864636060000001/data')
    expect(stdout).toContain(position(1_767_085_206_000, ',"sp":40'))
    expect(stdout).toMatch(/last payloads\n.*"signalTimestamp":1767085206000.*"speed":40/s)
  })

  test('proposes sources that `check` accepts as they are', async () => {
    await using broker = await openMqttBroker()
    const { stdout } = await learn(broker, async () => {
      await publishTrucks(broker)
      await broker.publish(
        'yard/box-17/pos: 1',
        '{"lat":48.1,"lng":2.2,"time":"2026-01-28 15:00:00","spd":3}',
      )
      await broker.publish('lamps/kitchen', '{"on":true}')
    }, ['--json'])
    const { yaml, sources, unread } = JSON.parse(stdout) as Record<string, unknown> & { yaml: string }
    expect(sources).toMatchObject([
      { source: { name: 'teltonika-json', preset: 'teltonika-json' }, tried: 6, devices: 2 },
      {
        preset: null,
        source: { topic: 'yard/{device}/pos: 1' },
        shapes: [{ result: { text: '1 payload' } }],
      },
    ])
    expect(unread).toMatchObject([{ filter: 'lamps/kitchen', last: { message: '{"on":true}' } }])
    const path = join(await newFolder(), 'gateway.yaml')
    await writeFile(path, `delivery: { base_url: http://127.0.0.1:1 }\n${yaml}`)
    expect(await runCli(['check', '--config', path])).toMatchObject({ status: 0, stderr: '' })
    expect(await readFile(path, 'utf8')).toContain('# 6 messages on teltonika/+/data')
  })

  test('writes sources, a device table and cases that pass as they are', async () => {
    await using broker = await openMqttBroker()
    const folder = join(await newFolder(), 'learned')
    const publish = async () => {
      await publishTrucks(broker)
      for (const [index, name] of ['anna', 'bob'].entries())
        await broker.publish(
          `yard/${name}/pos`,
          `{"lat":48.1,"lng":2.2,"time":"2026-01-28 15:00:0${index}","spd":30,"mileage":1}`,
        )
    }
    const { status, stdout } = await learn(broker, publish, ['--to', folder])
    expect(status).toBe(0)
    const table = await readFile(join(folder, 'devices.csv'), 'utf8')
    expect(table).toBe(
      'device,asset_id,operator,carrier,model\n864636060000000,,,,\n864636060000001,,,,\nanna,,,,\nbob,,,,\n',
    )
    expect(stdout).toContain(table)
    const cases = await readFile(join(folder, 'learned.cases.yaml'), 'utf8')
    expect(stdout).toContain(cases.split('\n')[1] ?? 'missing')
    const config = join(folder, 'gateway.yaml')
    expect(await runCli(['check', '--config', config])).toMatchObject({ status: 0, stderr: '' })
    const tested = await runCli(['map', '--test', '--config', config])
    expect(tested.stdout).toContain('learned.cases.yaml: 2 passed\n')
    expect(tested.status).toBe(0)
    await writeFile(join(folder, 'learned.cases.yaml'), cases.replace('latitude: 48.1', 'latitude: 48.2'))
    expect((await runCli(['map', '--test', '--config', config])).status).toBe(1)
    await using second = await openMqttBroker()
    const again = await learn(second, () => publishTrucks(second), ['--to', folder])
    expect(again.stderr).toContain('Nothing is replaced.')
  })

  test('reports retained messages as retained', async () => {
    await using broker = await openMqttBroker()
    await broker.publish('teltonika/864636060000001/data', position(1_767_085_201_000), { retain: true })
    const { stdout } = await learn(broker, () => broker.publish('x', 'y', { qos: 0 }))
    expect(stdout).toContain('Retained messages: all. None came live')
  })

  test('ends after its time, with status 1 if no message arrived', async () => {
    await using broker = await openMqttBroker()
    const { status, stdout } = await runCli(['learn', '--broker', broker.url, '--for', '100ms'])
    expect(status).toBe(1)
    expect(stdout).toMatch(/^0 messages on 0 topics in \d+ m?s\.\nNo message arrived/)
  })

  test('uses the messages so far when the broker ends the connection', async () => {
    await using broker = await openMqttBroker()
    const ran = runCli(['learn', '--broker', broker.url, '--for', '1h', '--topic', 'teltonika/+/data'])
    await broker.subscribed()
    await publishTrucks(broker)
    await broker.delivered()
    broker.cut()
    const { status, stdout } = await ran
    expect(status).toBe(0)
    expect(stdout).toMatch(/^6 messages .*, ended because the broker closed the connection\.\n/)
  })

  test('reads its password from a file, and never prints it', async () => {
    await using broker = await openMqttBroker({ user: { name: 'guest', password: 'open sesame' } })
    const file = join(await newFolder(), 'password')
    await writeFile(file, 'open sesame\n')
    const user = ['--username', 'guest', '--password-file', file]
    expect((await learn(broker, () => publishTrucks(broker), user)).status).toBe(0)
    await writeFile(file, 'wrong one\n')
    const refused = await runCli(['learn', '--broker', broker.url, ...user])
    expect(refused.status).toBe(1)
    expect(refused.stderr).toMatch(/^BROKER_UNREACHABLE/)
    expect(refused.stderr).not.toContain('wrong one')
    expect(refused.stderr).toMatch(/Check --username/)
    const noPassword = await runCli(['learn', '--broker', broker.url, '--username', 'guest'])
    expect(noPassword.stderr).toMatch(/--password-file FILE\.$/m)
    const nobody = await runCli(['learn', '--broker', broker.url])
    expect(nobody.stderr).toMatch(/lets no client in without a user name.+--username NAME/s)
  })

  test('reports that a gateway refuses subscriptions, and what to use instead', async () => {
    const spool = createMemoryIntakeSpool({ commits: 'auto' })
    await using gateway = await openIngest(spool, { subscriptions: 'refuse' })
    const { status, stderr } = await runCli(['learn', '--broker', `mqtt://127.0.0.1:${gateway.port}`])
    expect(status).toBe(1)
    expect(stderr).toMatch(/^SUBSCRIPTION_REFUSED/)
    expect(stderr).toContain('telemetry-gateway tap')
  })

  test('says what to use instead where a gateway grants the subscription and sends nothing', async () => {
    await using gateway = await openIngest(createMemoryIntakeSpool({ commits: 'auto' }))
    const url = `mqtt://127.0.0.1:${gateway.port}`
    const { stdout } = await runCli(['learn', '--broker', url, '--for', '1s'])
    expect(stdout).toContain('telemetry-gateway tap')
  })
})
