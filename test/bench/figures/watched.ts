// watched.ts: what ten browsers that watch the page cost at full ingest from 5,000 devices: runs with and without them,
// in turn, on one daemon. A browser has the events open and reads its view again every 5 seconds, as the script of the
// page does.

import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder, median, rounded, runLoad, startSink } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startGateway } from '../gateway.ts'
import { processorMs } from '../resident.ts'
import { endToEnd } from './throughput.ts'

const connections = 16
const devicesEach = 313
const window = 64
const targetShare = 0.95
const everyMs = 5000

/** The views of ten people. */
const views = [
  ...Array.from({ length: 5 }, () => '/'),
  ...Array.from({ length: 3 }, () => '/page/devices'),
  '/page/map',
  '/page/dead-letters',
]

type Run = { ackedPerS: number; cpuUsEach: number }

export async function measureWatched({ dir, scale, signals, pairs }: BenchOptions): Promise<Figure[]> {
  const messages = Math.max(50_000, Math.round(600_000 * scale))
  await using folder = await makeFolder(dir)
  await using sink = await startSink({ closed: false })
  await using gateway = await startGateway({ folder: folder.path, sinkPort: sink.port, signals })
  const load = () => runLoad({ port: gateway.mqttPort, messages, connections, window, devices: devicesEach })
  const run = async (): Promise<Run> => {
    const cpuMs = await processorMs(gateway.pid)
    const { ackedPerS } = await endToEnd(load, sink, messages)
    return { ackedPerS, cpuUsEach: (((await processorMs(gateway.pid)) - cpuMs) * 1000) / messages }
  }
  await run()
  const alone: Run[] = []
  const watched: Run[] = []
  let viewsRead = 0
  for (let pair = 0; pair < pairs; pair += 1) {
    alone.push(await run())
    const browsers = watch(gateway.url)
    watched.push(await run())
    viewsRead += await browsers.end()
  }
  const value =
    median(watched.map(({ ackedPerS }) => ackedPerS)) / median(alone.map(({ ackedPerS }) => ackedPerS))
  const ratesOf = (runs: readonly Run[]) => runs.map(({ ackedPerS }) => Math.round(ackedPerS))
  const cpuOf = (runs: readonly Run[]) => runs.map(({ cpuUsEach }) => rounded(cpuUsEach, 2))
  return [
    {
      figure: 'watched_16',
      value: rounded(value),
      unit: 'share of the rate without browsers',
      target: `>= ${targetShare}`,
      reached: value >= targetShare,
      detail: {
        messages,
        devices: connections * devicesEach,
        browsers: views.length,
        viewsRead,
        ackedPerS: { alone: ratesOf(alone), watched: ratesOf(watched) },
        cpuUsEach: { alone: cpuOf(alone), watched: cpuOf(watched) },
      },
    },
  ]
}

/** `end` gives how many views were read; it rejects where an answer was not 200. */
function watch(url: string): { end(): Promise<number> } {
  const closing = new AbortController()
  const { signal } = closing
  let count = 0
  const ended = Promise.all(
    views.map(async (view, index) => {
      const events = await fetch(`${url}/events`, { headers: { accept: 'text/event-stream' }, signal })
      if (events.status !== 200) throw new Error(`/events answered ${events.status}`)
      await Promise.all([drain(events), readView(view, (index * everyMs) / views.length)])
    }),
  )
  // Reported by end().
  ended.catch(() => undefined)

  async function drain(events: Response): Promise<void> {
    try {
      await events.body?.pipeTo(new WritableStream(), { signal })
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async function readView(view: string, delayMs: number): Promise<void> {
    try {
      await wait(delayMs, undefined, { signal })
      for (;;) {
        const answer = await fetch(url + view, { headers: { accept: 'text/html' }, signal })
        await answer.arrayBuffer()
        if (answer.status !== 200) throw new Error(`${view} answered ${answer.status}`)
        count += 1
        await wait(everyMs, undefined, { signal })
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  return {
    async end() {
      closing.abort()
      await ended
      return count
    },
  }
}
