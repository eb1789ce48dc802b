// custody-world.ts: real gateways with custody `delivered` before a scripted engine: real spool, delivery, mapping and
// sandbox. Their clock is fast.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CustodyView } from '../../src/ingest/ingest.ts'
import type { MessageSource } from '../../src/ingest/message-sources/types.ts'
import { configText, odometerSource } from './config-text.ts'
import { createFastClock, type FastClock } from './fast-clock.ts'
import { newFolder } from './folders.ts'
import { startPipeline, type Pipeline, type PipelineOptions } from './pipeline-world.ts'
import type { ScriptedEngine } from './scripted-engine.ts'

export type CustodyGateway = Pipeline & {
  source: MessageSource
  custody(): CustodyView & { oldestSeconds: number | null }
  /** Ends it as a machine that is lost: the engine notices at once, and the disk is gone. */
  lose(): Promise<void>
}

export type CustodyGatewayOptions = {
  /** Of the service; another gateway has started it. */
  baseUrl?: string
  sandbox?: PipelineOptions['sandbox']
  folder?: string
  delivery?: string
  /** YAML of one more source. */
  source?: string
  /** YAML of further top-level sections. */
  more?: string
  parkAfterMs?: number
  parkForMs?: number
  /** Of the clock, or the clock. */
  factor?: number
  clock?: FastClock
}

export async function startCustodyGateway(
  engine: ScriptedEngine,
  options: CustodyGatewayOptions = {},
): Promise<CustodyGateway> {
  const { parkAfterMs = 60_000, parkForMs = 180_000, factor = 100 } = options
  const folder = options.folder ?? (await newFolder())
  const source = engine.join()
  const pipeline = await startPipeline({
    folder,
    clock: options.clock ?? createFastClock(factor),
    config: configText({
      sources: options.source === undefined ? odometerSource : `${odometerSource}\n  - ${options.source}`,
      delivery: options.delivery ?? 'batch: { linger: 200ms }',
      more: `log: { level: debug }\n${options.more ?? ''}`,
    }),
    ...(options.sandbox && { sandbox: options.sandbox }),
    ...(options.baseUrl && { baseUrl: options.baseUrl }),
    deps: {
      moreSources: {
        entries: [{ source, silentAfterMs: 1e9, unheardAfterMs: 1e9 }],
        custody: { parkAfterMs, parkForMs, member: 'gw-1' },
      },
    },
  })
  return {
    ...pipeline,
    source,
    custody() {
      const { custody } = pipeline.status()
      if (custody === null) throw new Error('no custody')
      return custody as unknown as ReturnType<CustodyGateway['custody']>
    },
    async lose() {
      engine.leave(source)
      await pipeline.gateway.stop('lost')
      await rm(join(folder, 'spool'), { recursive: true, force: true, maxRetries: 10 })
    },
  }
}
