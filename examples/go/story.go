// A workload exchanges its token, creates a group, binds a role, lists groups, and reads a typed error. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"time"

	"arbor-platform/gen/chainguard/platform/common"
	"arbor-platform/gen/chainguard/platform/iam/v2"
	"arbor-platform/gen/chainguard/platform/oidc"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// connect opens a connection with TLS, or without it to this machine.
func connect(baseURL string) (*grpc.ClientConn, error) {
	address, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	port := address.Port()
	if address.Scheme == "https" {
		if port == "" {
			port = "443"
		}
		return grpc.NewClient(address.Hostname()+":"+port, grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	}
	if host := address.Hostname(); host != "127.0.0.1" && host != "localhost" {
		return nil, errors.New("a token must not be sent in cleartext to another machine")
	}
	return grpc.NewClient(address.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func withToken(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// exchange returns an API token of the identity for the workload's own token.
func exchange(ctx context.Context, conn *grpc.ClientConn, baseURL, identity, tokenFile string) (string, error) {
	upstream, err := os.ReadFile(tokenFile)
	if err != nil {
		return "", err
	}
	request := &oidc.ExchangeRequest{Aud: []string{baseURL}, Identity: identity}
	ctx = withToken(ctx, strings.TrimSpace(string(upstream)))
	token, err := oidc.NewSecurityTokenServiceClient(conn).Exchange(ctx, request)
	return token.GetToken(), err
}

// listChildren returns all groups directly below another, of all pages.
func listChildren(ctx context.Context, groups iamv2.GroupsServiceClient, parent string) ([]*iamv2.Group, error) {
	request := &iamv2.ListGroupsRequest{
		Uidp:     &common.UIDPFilter{ChildrenOf: parent},
		OrderBy:  "name",
		PageSize: 50,
	}
	var all []*iamv2.Group
	for {
		page, err := groups.ListGroups(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Groups...)
		if page.NextPageToken == "" {
			return all, nil
		}
		request.PageToken = page.NextPageToken
	}
}

// fieldViolations returns what an error says of fields of the request.
func fieldViolations(err error) (violations []*errdetails.BadRequest_FieldViolation) {
	for _, detail := range status.Convert(err).Details() {
		if badRequest, ok := detail.(*errdetails.BadRequest); ok {
			violations = append(violations, badRequest.FieldViolations...)
		}
	}
	return violations
}

func run(ctx context.Context) error {
	baseURL, identity, parent := os.Getenv("ARBOR_API"), os.Getenv("IDENTITY"), os.Getenv("GROUP")
	conn, err := connect(baseURL)
	if err != nil {
		return err
	}
	defer conn.Close()

	token, err := exchange(ctx, conn, baseURL, identity, os.Getenv("TOKEN_FILE"))
	if err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	ctx = withToken(ctx, token)
	fmt.Println("exchanged a token")

	groups := iamv2.NewGroupsServiceClient(conn)
	group, err := groups.CreateGroup(ctx, &iamv2.CreateGroupRequest{
		Parent: parent,
		Group:  &iamv2.Group{Name: "team of go", Description: "made by an example"},
	})
	if err != nil {
		return fmt.Errorf("create a group: %w", err)
	}
	fmt.Println("created", group.Uid)

	roles, err := iamv2.NewRolesServiceClient(conn).ListRoles(ctx, &iamv2.ListRolesRequest{Name: "viewer"})
	if err != nil {
		return fmt.Errorf("find the role: %w", err)
	}
	if len(roles.Roles) == 0 {
		return errors.New("there is no role viewer")
	}
	binding, err := iamv2.NewRoleBindingsServiceClient(conn).CreateRoleBinding(ctx, &iamv2.CreateRoleBindingRequest{
		Parent:      group.Uid,
		RoleBinding: &iamv2.RoleBinding{IdentityUid: identity, RoleUid: roles.Roles[0].Uid},
	})
	if err != nil {
		return fmt.Errorf("bind the role: %w", err)
	}
	fmt.Println("bound the role viewer:", binding.Uid)

	children, err := listChildren(ctx, groups, parent)
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	for _, child := range children {
		fmt.Println(child.Name)
	}

	_, err = groups.CreateGroup(ctx, &iamv2.CreateGroupRequest{Parent: parent, Group: &iamv2.Group{Name: "Not/Allowed"}})
	if status.Code(err) != codes.InvalidArgument {
		return fmt.Errorf("another error was expected than: %w", err)
	}
	for _, violation := range fieldViolations(err) {
		fmt.Println("INVALID_ARGUMENT:", violation.Description)
	}
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
