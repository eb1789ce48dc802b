// Copies of dead letters in real engines: the command of docs/engines.md that reads them from RabbitMQ after a gateway was
// lost with its disk, and one that is too large for NATS.

import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { natsMappings, startEngineFleet } from '../engines/engine-fleet.ts'
import { isInstalled } from '../engines/message-engine.ts'
import { hasNats, startNats } from '../engines/nats-engine.ts'
import { hasRabbit, startRabbit } from '../engines/rabbit-engine.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { spawnCommand } from '../support/spawned-daemon.ts'

const run = promisify(execFile)
const hasJq = isInstalled('/usr/bin/jq', 'Install the package jq.')

test.skipIf(!hasRabbit || !hasJq)(
  'copies of dead letters come out of RabbitMQ as lines that another gateway imports',
  async () => {
    const docs = await readFile(join(import.meta.dirname, '../../docs/engines.md'), 'utf8')
    const command = /^curl -s -u gateway[^]*?> copies\.ndjson$/m.exec(docs)![0]
    const engine = await startRabbit()
    const fleet = await startEngineFleet(engine, {
      gateways: 2,
      bridge: 'custody: delivered',
      trucks: {
        count: 4,
        content: (device, number) => (number <= 3 ? `poison ä ${device} ${number}` : undefined),
      },
    })
    await fleet.trucks.more(40)
    const copied = async () => {
      const statuses = await fleet.statuses()
      return statuses.reduce((sum, { custody }) => sum + (custody?.copied ?? 0), 0)
    }
    // RabbitMQ may deliver a message again, to the other gateway: a second dead letter.
    await eventually(async () => (await copied()) >= 12)
    await fleet.trucks.hold()
    await eventually(async () => (await fleet.statuses()).every(({ custody }) => custody?.outstanding === 0))
    await fleet.kill(0)
    await rm(fleet.gateways[0]!.folder, { recursive: true, force: true })
    const folder = await newFolder()
    const script = command
      .replace('-u gateway', '-u guest:guest')
      .replace('http://10.0.0.1:15672', `http://127.0.0.1:${engine.nodes[0]!.monitorPort}`)
    await writeFile(join(folder, 'read.sh'), script)
    await run('bash', ['-e', 'read.sh'], { cwd: folder })
    const file = join(folder, 'copies.ndjson')
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
    const texts = lines.map((line) => {
      const { envelope } = JSON.parse(line) as { envelope: { bytes: string } }
      return Buffer.from(envelope.bytes, 'base64').toString()
    })
    expect([...new Set(texts)].toSorted()).toEqual(
      [0, 1, 2, 3].flatMap((truck) => [1, 2, 3].map((n) => `poison ä truck-${truck} ${n}`)),
    )
    const config = join(fleet.gateways[1]!.folder, 'gateway.yaml')
    await spawnCommand(['dead-letters', 'requeue', '--config', config, '--file', file]).ended
    const [status] = await fleet.statuses()
    expect(status!.spool.deadLetters).toBe(lines.length)
  },
  240_000,
)

test.skipIf(!hasNats)(
  'a message that cannot be mapped and whose copy is too large for NATS stops nothing',
  async () => {
    const engine = await startNats({ lines: natsMappings })
    const fleet = await startEngineFleet(engine, {
      gateways: 1,
      bridge: 'custody: delivered',
      trucks: {
        count: 4,
        content: (device, number) => (device === 'truck-0' && number === 2 ? 'x'.repeat(900_000) : undefined),
      },
    })
    await fleet.trucks.more(100)
    await fleet.trucks.hold()
    const custody = async () => (await fleet.statuses())[0]?.custody
    await eventually(async () => (await custody())?.copied === 1)
    await eventually(async () => (await custody())?.outstanding === 0)
    expect(fleet.service.stats().distinctPayloadIds).toBe(fleet.trucks.acked - 1)
    expect((await custody())!.storeFailures).toBeGreaterThan(0)
  },
  120_000,
)
