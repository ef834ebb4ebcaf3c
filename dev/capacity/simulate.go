package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Tenants returns the share of the load that each of n tenants has. The kth largest share is
// proportional to k^-skew. Their order is random, and the same for the same seed.
func Tenants(n int, skew float64, seed uint64) []float64 {
	shares, sum := make([]float64, n), 0.0
	for i := range shares {
		shares[i] = math.Pow(float64(i+1), -skew)
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	r := rand.New(rand.NewPCG(seed, 1))
	r.Shuffle(n, func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
	return shares
}

// Placed holds the cell of each tenant.
type Placed []int

// ByHash places tenants at random, as a hash of their names does.
func ByHash(shares []float64, cells int, seed uint64) Placed {
	r, p := rand.New(rand.NewPCG(seed, 2)), make(Placed, len(shares))
	for i := range p {
		p[i] = r.IntN(cells)
	}
	return p
}

// Loads returns the load of each cell, with 1 for the mean.
func (p Placed) Loads(shares []float64, cells int) []float64 {
	loads := make([]float64, cells)
	for i, cell := range p {
		loads[cell] += shares[i] * float64(cells)
	}
	return loads
}

// Fullest returns the load of the fullest cell, with 1 for the mean.
func (p Placed) Fullest(shares []float64, cells int) float64 {
	return slices.Max(p.Loads(shares, cells))
}

// Moved moves up to most tenants, each from the fullest cell to the emptiest: the largest tenant
// that does not make the emptiest cell as full as the fullest was. It returns their number.
func (p Placed) Moved(shares []float64, cells, most int) (Placed, int) {
	p = slices.Clone(p)
	loads := p.Loads(shares, cells)
	for moved := 0; ; moved++ {
		from, to := slices.Index(loads, slices.Max(loads)), slices.Index(loads, slices.Min(loads))
		best, size := -1, 0.0
		for i, cell := range p {
			share := shares[i] * float64(cells)
			if cell == from && share > size && loads[to]+share < loads[from] {
				best, size = i, share
			}
		}
		if best < 0 || moved == most {
			return p, moved
		}
		p[best] = to
		loads[from], loads[to] = loads[from]-size, loads[to]+size
	}
}

// Row is a line of the table: how full the fullest cell is, with 1 for the mean.
type Row struct {
	Cells   int
	Skew    float64
	Largest float64 // the largest tenant alone, which no placement divides
	Hash    float64 // placed by chance: the median of the runs
	Few     float64 // the same, when one in a hundred tenants may be moved once
}

// Simulate returns the row of so many tenants, over several runs.
func Simulate(tenants, cells int, skew float64) Row {
	const runs = 21
	row := Row{Cells: cells, Skew: skew}
	var hash, few []float64
	for seed := range uint64(runs) {
		shares := Tenants(tenants, skew, seed)
		p := ByHash(shares, cells, seed)
		q, _ := p.Moved(shares, cells, tenants/100)
		hash, few = append(hash, p.Fullest(shares, cells)), append(few, q.Fullest(shares, cells))
		row.Largest = slices.Max(shares) * float64(cells)
	}
	row.Hash, row.Few = median(hash), median(few)
	return row
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
