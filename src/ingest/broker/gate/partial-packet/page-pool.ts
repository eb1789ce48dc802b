// page-pool.ts: pages of memory for partial packets, which are used again. Buffers of their own would wait
// for the garbage collector: clients that send partial packets and connect again made 100 MB of them.
//
//   slab    256 KiB from the system, cut into pages of 4 KiB
//   page    given to one partial packet, and taken back
//
// The bound is that of the partial packets (partial-budget.ts). A slab without a page in use is left to the
// collector, except one.

export type Page = { readonly bytes: Buffer; readonly slab: Slab }

type Slab = { free: Page[] }

export type PagePool = {
  take(): Page
  giveBack(page: Page): void
  /** Slabs from the system. */
  slabs(): number
}

export const pageBytes = 4096
const pagesPerSlab = 64

export function createPagePool(): PagePool {
  let slabs = 0
  /** Those with a free page. */
  const open = new Set<Slab>()

  function take(): Page {
    const [slab = newSlab()] = open
    const page = slab.free.pop()!
    if (slab.free.length === 0) open.delete(slab)
    return page
  }

  function newSlab(): Slab {
    const bytes = Buffer.allocUnsafeSlow(pagesPerSlab * pageBytes)
    const slab: Slab = { free: [] }
    for (let start = 0; start < bytes.length; start += pageBytes)
      slab.free.push({ bytes: bytes.subarray(start, start + pageBytes), slab })
    slabs += 1
    open.add(slab)
    return slab
  }

  function giveBack(page: Page): void {
    const { slab } = page
    slab.free.push(page)
    open.add(slab)
    if (slab.free.length < pagesPerSlab || open.size === 1) return
    open.delete(slab)
    slabs -= 1
  }

  return {
    take,
    giveBack,
    slabs() {
      return slabs
    },
  }
}
