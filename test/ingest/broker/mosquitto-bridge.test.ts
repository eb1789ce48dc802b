// A Mosquitto that bridges into the gateway: its connection has the protocol level 0x84 (try_private), which says that
// the client is a bridge, and it subscribes, publishes its own state, and keeps its session.

import { expect, test } from 'vitest'
import { accessOptions, accessSchema } from '../../../src/ingest/broker/access/access-config.ts'
import { createAuthority } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest, textOf, listenerTls } from '../../support/ingest-world.ts'
import { auto } from '../../support/memory-intake-spool.ts'
import { hasMosquitto, publishAll, startMosquitto } from '../../support/mosquitto.ts'

const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ topic: `t/${index % 7}`, payload: `m${index}` }))

test.skipIf(!hasMosquitto).each([
  ['tcp', false],
  ['tls', true],
])('takes every message of a Mosquitto that bridges over %s', async (_name, isSecure) => {
  const authority = createAuthority()
  const tls = listenerTls(authority.issue())
  const spool = auto()
  await using world = await openIngest(spool, {
    listeners: [{ host: '127.0.0.1', port: 0, tls: isSecure ? tls : null }],
    access: [accessOptions(accessSchema.parse({ users: [{ name: 'depot', password: 'secret' }] }))],
  })
  const mosquitto = await startMosquitto({
    files: { 'ca.pem': authority.ca },
    lines: [
      'connection gateway',
      `address localhost:${world.port}`,
      'topic t/# out 1',
      'try_private true',
      'cleansession false',
      'remote_clientid depot-bridge',
      'remote_username depot',
      'remote_password secret',
      'restart_timeout 1',
      'bridge_protocol_version mqttv311',
      ...(isSecure ? ['bridge_cafile %d/ca.pem'] : []),
    ],
  })
  const url = `mqtt://127.0.0.1:${mosquitto.port}`
  await publishAll(url, messages(300))
  const taken = () => new Set(spool.payloads.map(textOf).filter((text) => text.startsWith('m')))
  await eventually(() => taken().size === 300)
  // Its state on $SYS/broker/connection is acknowledged and ignored.
  expect(world.ingest.counters()).toMatchObject({ connections: 1, dropped: 0, dead: 0 })
  expect(world.ingest.counters().ignoredByReason).toMatchObject([{ reason: 'bridge_state' }])
})
