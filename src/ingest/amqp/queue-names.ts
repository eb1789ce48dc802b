// queue-names.ts: what the bridge names in RabbitMQ: all of it begins with `queue.prefix`.
//
//   PREFIX.0 ... PREFIX.n   a queue for each partition
//   PREFIX.dead             what a queue gives up, by its limits or by a policy
//   PREFIX.parked           messages whose payloads wait for longer (custody: delivered)
//   PREFIX.inbox            where devices have several topics: everything, before it is distributed
//   PREFIX.member.NAME      of a connection of that member: its name is in use
//   PREFIX.probe.ID         of one connection, for a moment: what RabbitMQ adds to a message
//   PREFIX.by-topic         the exchange that distributes by the topic
//   PREFIX.by-header        the exchange that distributes by a header

import { createHash, randomBytes } from 'node:crypto'
import type { AmqpOptions } from './types.ts'

export function partitionQueue(prefix: string, index: number): string {
  return `${prefix}.${index}`
}

export function partitionQueues({
  prefix,
  partitions,
}: Pick<AmqpOptions, 'prefix' | 'partitions'>): string[] {
  return Array.from({ length: partitions }, (_, index) => partitionQueue(prefix, index))
}

export const deadQueue = (prefix: string) => `${prefix}.dead`
export const parkedQueue = (prefix: string) => `${prefix}.parked`
export const inboxQueue = (prefix: string) => `${prefix}.inbox`
export const memberQueue = (prefix: string, member: string) => `${prefix}.member.${member}`
export const probeQueue = (prefix: string) => `${prefix}.probe.${randomBytes(8).toString('hex')}`

export function hashExchange({ prefix, partitionBy }: Pick<AmqpOptions, 'prefix' | 'partitionBy'>): string {
  return `${prefix}.by-${partitionBy.kind === 'header' ? 'header' : 'topic'}`
}

/**
 * How much a member prefers a queue: 0 to 2^31 - 1, different for each pair. The consumer with the highest
 * number gets the queue, so the queues spread over the members, and a member that leaves or comes moves only
 * its own (rendezvous hashing; RabbitMQ does the comparison).
 */
export function consumerPriority(member: string, queue: string): number {
  return createHash('sha256').update(`${member}\0${queue}`).digest().readUInt32BE(0) >>> 1
}

export const priorityMax = 2 ** 31

/** The partition of a device, where the gateway distributes (FNV-1a). It must never change. */
export function partitionOf(device: string, partitions: number): number {
  let hash = 0x811c_9dc5
  for (let at = 0; at < device.length; at += 1) {
    hash ^= device.charCodeAt(at)
    hash = Math.imul(hash, 0x0100_0193)
  }
  return (hash >>> 0) % partitions
}
