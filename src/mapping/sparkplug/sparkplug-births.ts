// sparkplug-births.ts: the births of the nodes and devices of one source, in memory and as durable state.
//
//   sparkplug/{source}/{group}/{node}            the table of the node's birth
//   sparkplug/{source}/{group}/{node}/{device}   the table of the device's birth
//
// A birth or death of a node ends what was known of it and its devices. Each change of the memory is a list
// of writes that belong to the message: they are durable in one commit, or the memory is dropped and
// `restore` starts from the store.
//
// The memory is bounded by `bytesMax` and `nodesMax`. Beyond, the nodes with the oldest births are forgotten,
// counted as evictions; their next message causes a rebirth request.
import { decodeTable, encodeTable, type BirthNumber, type Table } from './sparkplug-table.ts'
import type { StateWrite } from '../types.ts'

export type Node = {
  /** Null where only births of its devices are known. */
  table: Table | null
  devices: Map<string, Table>
  bdSeq: BirthNumber
  /** Sequence number of the last message; null where none came since the birth or the start. */
  seq: number | null
  /** Restored after a restart: a birth may have been missed meanwhile. */
  isRestored: boolean
  bytes: number
}

export type BirthsOptions = { source: string; nodesMax: number; bytesMax: number }

/** The start of the keys of births. */
export const birthKeyHead = 'sparkplug/'

/** Characters of the key of a state entry. */
const keyLengthMax = 512

const nodeBytes = 512

export function createBirths({ source, nodesMax, bytesMax }: BirthsOptions) {
  const prefix = `${birthKeyHead}${source.replaceAll('%', '%25').replaceAll('/', '%2F')}/`
  /** By `group/node`, in the order of their births. */
  const nodes = new Map<string, Node>()
  let bytes = 0
  let evictions = 0
  let damaged = 0
  return { nodeOf, nodeBorn, deviceBorn, nodeDied, deviceDied, restore, counters }

  function nodeOf(name: string): Node | undefined {
    return nodes.get(name)
  }

  /** The writes; null where the birth is too large to be remembered. */
  function nodeBorn(name: string, table: Table, bdSeq: BirthNumber, seq: number | null): StateWrite[] | null {
    const key = prefix + name
    if (key.length > keyLengthMax || table.bytes + nodeBytes > bytesMax) return null
    const writes = nodeDied(name)
    put(name, { table, devices: new Map(), bdSeq, seq, isRestored: false, bytes: nodeBytes + table.bytes })
    writes.push({ key, value: encodeTable(table, bdSeq) })
    return evicted(name, writes)
  }

  /** The same for a device. Its node may be unknown because its birth was missed. */
  function deviceBorn(name: string, device: string, table: Table): StateWrite[] | null {
    const key = `${prefix}${name}/${device}`
    const node = nodes.get(name)
    const others = (node?.bytes ?? nodeBytes) - (node?.devices.get(device)?.bytes ?? 0)
    if (key.length > keyLengthMax || others + table.bytes > bytesMax) return null
    putDevice(name, device, table)
    return evicted(name, [{ key, value: encodeTable(table, null) }])
  }

  function nodeDied(name: string): StateWrite[] {
    const node = nodes.get(name)
    if (!node) return []
    nodes.delete(name)
    bytes -= node.bytes
    const writes: StateWrite[] = []
    if (node.table) writes.push({ key: prefix + name, value: null })
    for (const device of node.devices.keys()) writes.push({ key: `${prefix}${name}/${device}`, value: null })
    return writes
  }

  function deviceDied(name: string, device: string): StateWrite[] {
    const node = nodes.get(name)
    const table = node?.devices.get(device)
    if (!node || !table) return []
    node.devices.delete(device)
    node.bytes -= table.bytes
    bytes -= table.bytes
    return [{ key: `${prefix}${name}/${device}`, value: null }]
  }

  function put(name: string, node: Node): void {
    nodes.set(name, node)
    bytes += node.bytes
  }

  function putDevice(name: string, device: string, table: Table): Node {
    const node = nodes.get(name) ?? emptyNode()
    if (node.bytes === nodeBytes && !nodes.has(name)) put(name, node)
    const growth = table.bytes - (node.devices.get(device)?.bytes ?? 0)
    node.devices.set(device, table)
    node.bytes += growth
    bytes += growth
    return node
  }

  /** Forgets the oldest births until the rest fits; never the current node. */
  function evicted(current: string, writes: StateWrite[]): StateWrite[] {
    if (nodes.size <= nodesMax && bytes <= bytesMax) return writes
    for (const name of nodes.keys()) {
      if (name === current) continue
      writes.push(...nodeDied(name))
      evictions += 1
      if (nodes.size <= nodesMax && bytes <= bytesMax) break
    }
    return writes
  }

  /** Forgets everything and starts from these entries; ignores entries of others. */
  function restore(entries: Iterable<readonly [string, Buffer]>): void {
    nodes.clear()
    bytes = 0
    for (const [key, value] of entries) {
      if (!key.startsWith(prefix)) continue
      const [group, nodeName, device, ...more] = key.slice(prefix.length).split('/')
      const read = decodeTable(value)
      if (!group || !nodeName || more.length > 0 || !read) {
        damaged += 1
        continue
      }
      const name = `${group}/${nodeName}`
      const node = device === undefined ? restoredNode(name, read) : putDevice(name, device, read.table)
      node.isRestored = true
      evicted(name, [])
    }
  }

  function restoredNode(name: string, { table, bdSeq }: { table: Table; bdSeq: BirthNumber }): Node {
    const node = nodes.get(name) ?? emptyNode()
    if (!nodes.has(name)) put(name, node)
    node.table = table
    node.bdSeq = bdSeq
    node.bytes += table.bytes
    bytes += table.bytes
    return node
  }

  function counters() {
    let devices = 0
    for (const node of nodes.values()) devices += node.devices.size
    return { nodes: nodes.size, devices, bytes, evictions, damaged }
  }
}

function emptyNode(): Node {
  return { table: null, devices: new Map(), bdSeq: null, seq: null, isRestored: false, bytes: nodeBytes }
}
