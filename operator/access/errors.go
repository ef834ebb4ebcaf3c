package access

import "fmt"

// BadUserError says why a user cannot be added. Nothing was changed.
type BadUserError struct{ Problem string }

func (e *BadUserError) Error() string { return "access: " + e.Problem }

// NoFolderError says that a folder was not made by Init.
type NoFolderError struct {
	Dir string
	Err error
}

func (e *NoFolderError) Error() string {
	return fmt.Sprintf("access: %s is no folder of access: %v; make one with skein access init", e.Dir, e.Err)
}

func (e *NoFolderError) Unwrap() error { return e.Err }

// ExistsError says that what was to be created exists already. Nothing was changed.
type ExistsError struct{ What, Hint string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("access: %s is there already; %s", e.What, e.Hint)
}

// NoUserError says that there is no such user to revoke.
type NoUserError struct{ Tenant, Name string }

func (e *NoUserError) Error() string {
	of := "of no tenant"
	if e.Tenant != "" {
		of = "of the tenant " + named(e.Tenant)
	}
	return fmt.Sprintf("access: there is no user %s %s who may connect; see skein access list", named(e.Name), of)
}

// BusyError says that another process changes the folder.
type BusyError struct{ Dir string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("access: another process changes %s; try again", e.Dir)
}

// NoKeyError says that there is no such API key to revoke.
type NoKeyError struct{ ID string }

func (e *NoKeyError) Error() string {
	return fmt.Sprintf("access: there is no API key %s that may be used; see skein access key list", named(e.ID))
}
