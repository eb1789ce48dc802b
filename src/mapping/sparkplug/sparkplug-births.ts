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
  /** Of its own birth by '', of those of its devices by their names. */
  tables: Map<string, Table>
  bdSeq: BirthNumber
  /** Sequence number of the last message; null where none came since the birth or the start. */
  seq: number | null
  /** Restored after a restart: a birth may have been missed meanwhile. */
  isRestored: boolean
  bytes: number
}

export type BirthNumbers = Pick<Node, 'bdSeq' | 'seq'>

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
  return { nodeOf: (name: string) => nodes.get(name), born, died, restore, counters }

  /**
   * The writes for the birth of a device, or of the node itself (''). Null where it is too large to be
   * remembered. The node of a device may be unknown because its birth was missed.
   */
  function born(name: string, device: string, table: Table, numbers: BirthNumbers): StateWrite[] | null {
    const key = keyOf(name, device)
    const known = device === '' ? undefined : nodes.get(name)
    const others = (known?.bytes ?? nodeBytes) - (known?.tables.get(device)?.bytes ?? 0)
    if (key.length > keyLengthMax || others + table.bytes > bytesMax) return null
    const writes = device === '' ? died(name, '') : []
    put(name, device, table, numbers)
    writes.push({ key, value: encodeTable(table, numbers.bdSeq) })
    return evicted(name, writes)
  }

  /** The writes for the death of a device, or of the node (''), which ends its devices, too. */
  function died(name: string, device: string): StateWrite[] {
    const node = nodes.get(name)
    if (node === undefined) return []
    const gone = device === '' ? [...node.tables.keys()] : [device].filter((one) => node.tables.has(one))
    for (const one of gone) {
      resize(node, -node.tables.get(one)!.bytes)
      node.tables.delete(one)
    }
    if (device === '') {
      nodes.delete(name)
      bytes -= nodeBytes
    }
    return gone.map((one) => ({ key: keyOf(name, one), value: null }))
  }

  function put(name: string, device: string, table: Table, { bdSeq, seq }: BirthNumbers): Node {
    let node = nodes.get(name)
    if (node === undefined) {
      node = { tables: new Map(), bdSeq: null, seq: null, isRestored: false, bytes: 0 }
      nodes.set(name, node)
      resize(node, nodeBytes)
    }
    if (device === '') Object.assign(node, { bdSeq, seq })
    resize(node, table.bytes - (node.tables.get(device)?.bytes ?? 0))
    node.tables.set(device, table)
    return node
  }

  function resize(node: Node, growth: number): void {
    node.bytes += growth
    bytes += growth
  }

  function keyOf(name: string, device: string): string {
    return prefix + name + (device === '' ? '' : `/${device}`)
  }

  /** Forgets the oldest births until the rest fits; never the current node. */
  function evicted(current: string, writes: StateWrite[]): StateWrite[] {
    if (nodes.size <= nodesMax && bytes <= bytesMax) return writes
    for (const name of nodes.keys()) {
      if (name === current) continue
      writes.push(...died(name, ''))
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
      const [group, nodeName, device = '', ...more] = key.slice(prefix.length).split('/')
      const read = decodeTable(value)
      if (!group || !nodeName || more.length > 0 || !read) {
        damaged += 1
        continue
      }
      const name = `${group}/${nodeName}`
      put(name, device, read.table, { bdSeq: read.bdSeq, seq: null }).isRestored = true
      evicted(name, [])
    }
  }

  function counters() {
    let tables = 0
    let births = 0
    for (const node of nodes.values()) {
      tables += node.tables.size
      births += node.tables.has('') ? 1 : 0
    }
    return { nodes: nodes.size, devices: tables - births, bytes, evictions, damaged }
  }
}
