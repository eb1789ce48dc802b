// jetstream-check.ts: tries a bridge to NATS for `check --connect` and `doctor`. It takes no message and
// creates nothing: stream, durables and bucket are read.

import type { BridgeFinding } from '../bridges/bridges.ts'
import { jetstreamOptions, type JetStreamBridgeConfig } from './jetstream-config.ts'
import { bucketName, bucketStream } from './members/members.ts'
import { probeMapping } from './stream-setup/mapping-check.ts'
import { parkingFindings } from './jetstream-parking/parking-streams.ts'
import { openConnection, urlsText, type Connection } from './nats-connection.ts'
import { apiCode, natsFault, notFound } from './nats-faults.ts'
import { durableName, mappingLines } from './nats-subjects.ts'
import { addCommand, durableFinding, streamFindings, type SetupFinding } from './stream-setup/stream-setup.ts'
import type { JetStreamOptions } from './types.ts'

/** Resolves with a finding in any case. `stop` ends the try. */
export async function checkJetStream(
  config: JetStreamBridgeConfig,
  stop: AbortSignal,
): Promise<BridgeFinding> {
  const options = jetstreamOptions(config)
  const where = `${options.name}: ${urlsText(options)}`
  let connection: Connection | null = null
  const onAbort = () => void connection?.nc.close()
  stop.addEventListener('abort', onAbort, { once: true })
  try {
    connection = await openConnection({ ...options, member: `${options.member} (check)` })
    const found = await look(connection, options)
    const first = found[0]
    const what = `${where} accepts the connection (NATS ${connection.version})`
    const lines = mappingLines(options)
    const mapping = lines.length === 0 ? '' : ` \`mappings\` of the account need: ${lines.join(', ')}`
    if (first === undefined)
      return {
        state: 'ok',
        what: `${what}, and has the stream ${options.stream} and its durables.${mapping}`,
      }
    const more =
      found.length > 1
        ? ` ${found.length - 1} more: ${found
            .slice(1)
            .map(({ detail }) => detail)
            .join(' ')}`
        : ''
    return {
      state: first.isFatal ? 'failed' : 'warning',
      what: `${what}. ${first.detail}`,
      why: `Messages would be lost or not taken.${more}`,
      act: first.act,
    }
  } catch (error) {
    const { detail, act } = natsFault(error, options)
    return { state: 'failed', what: `${where} cannot be used.`, why: detail, act }
  } finally {
    stop.removeEventListener('abort', onAbort)
    await connection?.nc.close().catch(() => undefined)
  }
}

type Found = SetupFinding & { isFatal: boolean }

/** The worst first. */
async function look(connection: Connection, options: JetStreamOptions): Promise<Found[]> {
  const { jsm } = connection
  const fatal: SetupFinding[] = []
  const warnings = streamFindings(await jsm.streams.info(options.stream))
  const mapping = await probeMapping(connection, options)
  if (mapping !== null) fatal.push(mapping)
  const missing: SetupFinding[] = []
  for (let partition = 0; partition < options.partitions; partition += 1) {
    const info = await jsm.consumers.info(options.stream, durableName(options, partition)).catch(ifMissing)
    if (info === null)
      missing.push({
        detail: `The durable ${durableName(options, partition)} does not exist.`,
        act: `Run: ${addCommand(options, partition)}`,
      })
    else {
      const finding = durableFinding(info, options, partition)
      if (finding !== null) fatal.push(finding)
    }
  }
  if ((await jsm.streams.info(bucketStream(options.prefix)).catch(ifMissing)) === null)
    missing.push({
      detail: `The bucket ${bucketName(options.prefix)} does not exist.`,
      act: `Run: nats kv add ${bucketName(options.prefix)} --replicas=3`,
    })
  if (options.custody === 'delivered') {
    const parking = await parkingFindings(connection, options)
    missing.push(...parking.missing)
    fatal.push(...parking.different)
  }
  // The gateway creates it at its start.
  if (options.provision)
    warnings.unshift(
      ...missing.map((one) => ({
        ...one,
        act: 'Start the gateway before the devices connect: it creates it.',
      })),
    )
  else fatal.push(...missing)
  return [
    ...fatal.map((one) => ({ ...one, isFatal: true })),
    ...warnings.map((one) => ({ ...one, isFatal: false })),
  ]
}

function ifMissing(error: unknown): null {
  const code = apiCode(error)
  if (code === notFound.consumer || code === notFound.stream) return null
  throw error
}
