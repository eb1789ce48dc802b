// jetstream-check.ts: tries a bridge to NATS for `check --connect` and `doctor`. It takes no message and
// creates nothing: stream, durables and bucket are read.

import type { BridgeFinding } from '../bridges/bridges.ts'
import { jetstreamOptions, type JetStreamBridgeConfig } from './jetstream-config.ts'
import { bucketName, bucketStream } from './members/members.ts'
import { probeMapping } from './stream-setup/mapping-check.ts'
import { parkingFindings } from './jetstream-parking/parking-streams.ts'
import { urlsText } from './nats-address.ts'
import { openConnection, type Connection } from './nats-connection.ts'
import { apiCode, natsFault, notFound } from './nats-faults.ts'
import { durableName, mappingLines } from './nats-subjects.ts'
import { addCommand, durableFinding, streamFindings, type SetupFinding } from './stream-setup/stream-setup.ts'
import { mqttStream, type JetStreamOptions } from './types.ts'

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
    const { found, creates } = await look(connection, options)
    const first = found[0]
    const what =
      `${where} accepts the connection (NATS ${connection.version}).` +
      (creates.length === 0
        ? ''
        : ` At its start the gateway creates ${creates.join(', ')}. Start it before devices connect.`)
    if (first === undefined) {
      const complete = creates.length === 0 ? ` The stream ${options.stream} and its durables exist.` : ''
      return { state: 'ok', what: `${what}${complete}${mappingText(options)}` }
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
      what: `${what} ${first.detail}`,
      why:
        (first.isFatal ? 'Messages would be lost or not taken.' : 'Messages could be lost or not taken.') +
        more,
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

function mappingText(options: JetStreamOptions): string {
  const lines = mappingLines(options)
  if (lines.length === 0) return ''
  // In another stream they are not compared.
  const verb = options.stream === mqttStream ? 'are right' : 'must be'
  return ` \`mappings\` of the account ${verb}: ${lines.join(', ')}`
}

/** The worst first; what the gateway will create is no finding. */
async function look(
  connection: Connection,
  options: JetStreamOptions,
): Promise<{ found: Found[]; creates: string[] }> {
  const { jsm } = connection
  const fatal: SetupFinding[] = []
  const missing: (SetupFinding & { name: string })[] = []
  const mayCreateStream = options.provision && options.stream === mqttStream
  const stream = await jsm.streams.info(options.stream).catch((error: unknown) => {
    if (!mayCreateStream) throw error
    return ifMissing(error)
  })
  const warnings = stream === null ? [] : streamFindings(stream, options)
  if (stream === null)
    missing.push({ name: `the stream ${options.stream}`, detail: 'It does not exist.', act: '' })
  const mapping = await probeMapping(connection, options)
  if (mapping.state === 'unknown')
    warnings.push({
      detail: 'The mapping of partitions was not checked: no probe came back.',
      act:
        'Give the user the rights for the probe (docs/engines.md, NATS). Or compare `mappings` of the account with ' +
        mappingLines(options).join(', '),
    })
  else if (mapping.finding !== null) (mapping.state === 'differs' ? fatal : warnings).push(mapping.finding)
  for (let partition = 0; partition < options.partitions; partition += 1) {
    const info = await jsm.consumers.info(options.stream, durableName(options, partition)).catch(ifMissing)
    if (info === null)
      missing.push({
        name: durableName(options, partition),
        detail: `The durable ${durableName(options, partition)} does not exist.`,
        act: `Run: ${addCommand(options, partition)}. Or set provision: true.`,
      })
    else {
      const finding = durableFinding(info, options, partition)
      if (finding !== null) fatal.push(finding)
    }
  }
  const beyond = durableName(options, options.partitions)
  const left = await jsm.consumers.info(options.stream, beyond).catch(ifMissing)
  if (left !== null)
    warnings.push({
      detail:
        `The durable ${beyond} exists, and with partitions: ${options.partitions} no gateway takes its ` +
        `${left.num_pending + left.num_ack_pending} messages.`,
      act: 'Set partitions and the mapping to the former number until all durables are empty. Delete a durable only then.',
    })
  if ((await jsm.streams.info(bucketStream(options.prefix)).catch(ifMissing)) === null)
    missing.push({
      name: bucketName(options.prefix),
      detail: `The bucket ${bucketName(options.prefix)} does not exist.`,
      act: `Run: nats kv add ${bucketName(options.prefix)} --replicas=3. Or set provision: true.`,
    })
  if (options.custody === 'delivered') {
    const parking = await parkingFindings(connection, options)
    missing.push(...parking.missing.map((one) => ({ ...one, name: 'the streams of custody' })))
    fatal.push(...parking.different)
  }
  if (!options.provision) fatal.push(...missing)
  const found = [
    ...fatal.map((one) => ({ ...one, isFatal: true })),
    ...warnings.map((one) => ({ ...one, isFatal: false })),
  ]
  return { found, creates: options.provision ? [...new Set(missing.map(({ name }) => name))] : [] }
}

function ifMissing(error: unknown): null {
  const code = apiCode(error)
  if (code === notFound.consumer || code === notFound.stream) return null
  throw error
}
