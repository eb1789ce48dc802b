// killable-daemon.ts: the unchanged gateway on a store that can kill its process, or that does not sync: killable.ts.
//
//   node test/support/driver/killable-daemon.ts --config FILE [--kill-at POINT --after N] [--without-sync]

import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { realPlaces, startGateway, systemKernelClock } from '../../../src/app/app.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { newRandomId } from '../../../src/domain/ids.ts'
import { systemClock } from '../../../src/std/clock.ts'
import {
  checkInThread,
  openLevelStore,
  readTablesInThread,
  realDisk,
  type OpenStore,
} from '../../../src/storage/storage.ts'
import { killPoints, type KillPoint } from './killable.ts'

const { values } = parseArgs({
  options: {
    config: { type: 'string', default: '' },
    'kill-at': { type: 'string' },
    after: { type: 'string', default: '1' },
    'without-sync': { type: 'boolean', default: false },
  },
})
const killAt = values['kill-at']
if (killAt !== undefined && !killPoints.some((point) => point === killAt))
  throw new Error(`${killAt} is none of ${killPoints.join(', ')}`)

/** First byte of the keys of chunks, as in src/spool/chunk-log/key-layout.ts. */
const chunkTable = 0x10

let left = Number(values.after)
function reach(point: KillPoint): void {
  if (point !== killAt) return
  left -= 1
  if (left === 0) process.kill(process.pid, 'SIGKILL')
}

const openStore: OpenStore = async (path, storeOptions) => {
  const store = await openLevelStore(path, storeOptions)
  // The records of the ledger are another database, which may be lost.
  if (basename(path) === 'records') return store
  return {
    ...store,
    async write(ops, options) {
      const hasChunk = (type: 'put' | 'del') => ops.some((op) => op.type === type && op.key[0] === chunkTable)
      const hasMessages = hasChunk('put') && !hasChunk('del')
      const written = store.write(ops, values['without-sync'] ? { sync: false } : options)
      if (hasMessages) reach('during-write')
      await written
      if (hasMessages) reach('after-write-before-ack')
    },
  }
}

const stopAsked = new Promise((resolve) => {
  process.once('SIGTERM', resolve)
})
const { config, files } = await loadConfig(values.config, { env: process.env })
const gateway = await startGateway(
  {
    clock: systemClock,
    kernel: systemKernelClock(realPlaces(process.env)),
    random: Math.random,
    newId: newRandomId,
    env: process.env,
    stdout: process.stdout,
    version: '0.0.0-killable',
    openStore,
    checkStore: checkInThread,
    readTables: readTablesInThread,
    disk: realDisk,
    configFiles: files,
  },
  config,
  values.config,
)
await Promise.race([stopAsked, gateway.broken.then((fault) => Promise.reject(fault))])
await gateway.stop('SIGTERM')
process.exit(0)
